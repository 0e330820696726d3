import pickle

from hpcmoe.errors import InputError, SimulationError, closest_first


def test_message_names_file_field_value_and_what_is_allowed() -> None:
    error = InputError("bad value", file="config.txt", field="CC_MODE", value="x", allowed=(0, 1))
    assert str(error) == "config.txt: CC_MODE: bad value (got 'x'); allowed: 0, 1"
    assert error.exit_code == 2


def test_message_alone() -> None:
    assert str(InputError("no flow")) == "no flow"


def test_a_value_of_zero_is_shown() -> None:
    assert str(InputError("too small", value=0)) == "too small (got 0)"


def test_pickling_keeps_everything() -> None:
    error = InputError("bad", file="f", field="k", value=[1], allowed="2")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.file, again.value) == (str(error), "f", [1])


def test_simulation_errors_have_their_own_exit_code() -> None:
    assert SimulationError("stuck").exit_code == 3


def test_the_closest_name_comes_first() -> None:
    assert closest_first("bufer_bytes", ["payload_bytes", "buffer_bytes", "cc_mode"])[0] == "buffer_bytes"


def test_names_from_a_file_do_not_break_the_line() -> None:
    error = InputError("unknown", file="f\x1b[31m", field="a\nb", value="x\ny", allowed=["c\u2028d"])
    assert str(error) == "f\\x1b[31m: a\\nb: unknown (got 'x\\ny'); allowed: c\\u2028d"
