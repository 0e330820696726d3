"""What ``hpcmoe COMMAND --help`` says beside the options: what is read and written, exit codes, examples.

Every page is text alone; the parsers get it when they are built. A test parses every example.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_WIDTH = 100
_ALWAYS = {0: "done", 2: "bad input: one line says what, where and what is allowed"}
_STALL = {3: "the simulation cannot go on; the message names the ranks and nodes"}
_STORAGE = {4: "the file system refuses to store results"}
KEY = "flash/t6/tp2ep16/ring_direct/ib_cc0"


@dataclass(frozen=True)
class Page:
    """``about`` is the description, ``codes`` are exit codes beside 0 and 2, ``examples`` command lines."""

    about: str
    examples: tuple[str, ...]
    codes: Mapping[int, str] = field(default_factory=dict)


PAGES: dict[str, Page] = {
    "run": Page(
        "Simulates one configuration of the study packet by packet and prints completion, GPU and "
        "communication time of the slowest rank. KEY names model, topology, strategy, collectives and "
        "network; 'hpcmoe list' shows the names. Reads the catalog, and a config.json with "
        "--model-config. Writes nothing but --json.",
        (
            f"hpcmoe run {KEY} --layers 1",
            (f"hpcmoe run {KEY} --tokens 64 --layers 1 --set u_target=0.9 --json -"),
        ),
        _STALL,
    ),
    "list": Page(
        "Lists run keys that match shell globs, one a line, or describes the catalog's models, "
        "topologies, networks or collectives, the user's own included.",
        (
            "hpcmoe list '*/t6/tp2ep16/*/ib_cc0'",
            "hpcmoe list --models",
        ),
    ),
    "parameters": Page(
        "Lists the simulator's parameters: unit, default, upstream's default where it differs, "
        "allowed values, meaning. All of them can be given to --set.",
        (
            "hpcmoe parameters",
            "hpcmoe parameters u_target ewma_gain",
        ),
    ),
    "trace": Page(
        "Writes the Chakra traces of a configuration, DIR/et.<rank>.et, one per rank. DIR is made if "
        "there is none.",
        (f"hpcmoe trace {KEY} traces/ --layers 1 --tokens 64",),
    ),
    "export": Page(
        "Writes a configuration as the input files of ASTRA-sim's ns-3 binary: traces, system, "
        "network, memory and topology files, the policy file of flows inside servers, and run.sh, "
        "which runs them there or here.",
        (f"hpcmoe export {KEY} exported/ --layers 1 --tokens 64",),
    ),
    "simulate": Page(
        "Runs ASTRA-sim's input files, with its command line, its quirks and its report on standard "
        "output. Reads the files named and those that config.txt names; the environment variable "
        "ASTRA_NS3_CC_POLICY names a policy file. Writes the fct, pfc and qlen files that config.txt "
        "names.",
        (
            (
                "hpcmoe simulate --workload-configuration=et --system-configuration=system.json "
                "--network-configuration=config.txt --remote-memory-configuration=memory.json "
                "--logical-topology-configuration=logical.json"
            ),
        ),
        _STALL,
    ),
    "flows": Page(
        "Runs a list of flows, 't_ns src dst bytes' a line, on the network of a config.txt, without "
        "any workload. Writes a line per finished flow: addresses, ports, bytes, start, completion "
        "time, standalone time.",
        (
            "hpcmoe flows --network-configuration config.txt --flows flows.txt --fct fct.txt",
            (
                "hpcmoe flows --network-configuration config.txt --flows flows.txt --fct fct.txt "
                "--until-ns 1000000"
            ),
        ),
        _STALL,
    ),
    "import": Page(
        "Takes a run of ASTRA-sim into a results file of imported runs. Reads a folder of 'hpcmoe "
        "export' in which the program ran: the inputs, stdout.txt with what it printed, and its fct, "
        "pfc and qlen files. What it does not report is marked as missing, and the provenance says "
        "whose numbers these are.",
        (
            "hpcmoe import exported -o theirs.h5",
            "hpcmoe import exported -o theirs.h5 --name 'ASTRA-sim 518bd51' --labels ours.h5",
        ),
        _STORAGE,
    ),
    "compare": Page(
        "Two runs of one file: the factors, parameters and links that differ, and which part of the "
        "critical path explains the difference. Or two files: every run that both have, by times of "
        "ranks and by flows.",
        (
            (f"hpcmoe compare study.h5 {KEY} flash/t1/tp2ep16/ring_direct/ib_cc0"),
            "hpcmoe compare ours.h5 theirs.h5 --select 'flash/*' --json differences.json",
        ),
        {1: "of two files: a run differs"},
    ),
    "report": Page(
        "Writes index.html, report.md, tables/*.csv and figures/* into a folder: every table, figure "
        "and claim of the study beside this file's values, and what is missing. The file may still be "
        "filling.",
        (
            "hpcmoe report study.h5 -o report/",
            "hpcmoe report study.h5 -o report/ --no-figures --runs '*/t6/*'",
        ),
    ),
    "inspect": Page(
        "Looks inside one run: critical path, busiest links, messages and stragglers of a layer, from "
        "the traces in the results file; nothing is simulated. Prints text, and writes a page and a "
        "trace for Perfetto on request.",
        (
            f"hpcmoe inspect study.h5 {KEY}",
            (f"hpcmoe inspect study.h5 {KEY} --html run.html --trace run.json"),
        ),
    ),
    "crosscheck": Page(
        "Runs configurations on this program's network engine and on ns-3, where that is built in, "
        "and compares every flow and rank to the nanosecond. Writes nothing.",
        (
            "hpcmoe crosscheck --tokens 64",
            f"hpcmoe crosscheck --select {KEY} --tokens 64",
        ),
        {1: "a run differs", **_STALL},
    ),
    "et info": Page(
        "Counts what Chakra traces hold: nodes by type, collectives by type, size and group, "
        "messages, volumes, operations, durations, process groups, attributes, and the schema "
        "version. Reads .et files.",
        (
            "hpcmoe et info exported/et",
            "hpcmoe et info exported/et.0.et exported/et.1.et --json -",
        ),
    ),
    "et print": Page(
        "Shows the nodes of a trace, one a line, or one node in full.",
        (
            "hpcmoe et print exported/et.0.et --limit 10",
            "hpcmoe et print exported/et.0.et --node 3",
        ),
    ),
    "et validate": Page(
        "Lists every problem of the traces <prefix>.<rank>.et as a line with file, node, field, value "
        "and remedy: in each trace, and between ranks (sends without receives, collectives that "
        "differ).",
        (
            "hpcmoe et validate exported/et",
            (
                "hpcmoe et validate exported/et --ranks 32 --logical-topology-configuration "
                "exported/logical.json"
            ),
        ),
        {2: "something is wrong with the traces, or bad input"},
    ),
    "validate nccl-alltoall": Page(
        "Simulates the all-to-all that the study measured on 32 accelerators and prints our time "
        "beside the published simulated and measured ones, and every assumption that the study does "
        "not publish with the option that changes it. The published 2 GB take about a minute of CPU "
        "time.",
        (
            "hpcmoe validate nccl-alltoall --bytes 16MB",
            ("hpcmoe validate nccl-alltoall --network roce_hpcc --scaleup-rate 7200Gbps --json outcome.json"),
        ),
        _STALL,
    ),
    "study init": Page(
        "Writes a study file to start from: a commented example that runs as it stands in about a minute. "
        "A file that exists is left alone.",
        ("hpcmoe study init", "hpcmoe study init mine.yaml"),
    ),
    "study check": Page(
        "Reads a study file and builds runs that together have every level of every factor; prints levels, "
        "settings, the number of runs, predicted core-hours and the first keys. What is wrong is one line "
        "with the line of the file. Nothing is run.",
        ("hpcmoe study check study.yaml", "hpcmoe study check study.yaml --json -"),
    ),
    "plan": Page(
        "Predicts CPU time, memory and the useful number of ranks of a sweep from measured costs; "
        "nothing is run. With a results file only what it lacks is counted.",
        (
            "hpcmoe plan --select 'flash/*' --layers 1",
            "hpcmoe plan study.h5 --ranks 32 128",
            "hpcmoe plan --study study.yaml",
        ),
    ),
    "status": Page(
        "Tells how many runs of a results file are done, failed and left, and which sweep works on it now.",
        (
            "hpcmoe status study.h5",
            "hpcmoe status study.h5 --json -",
        ),
        {1: "the file has failed runs"},
    ),
    "merge": Page(
        "Takes the traces that finished runs left in FILE.h5.spool into the file, as a sweep does at "
        "its end: a new file is written beside the old one, read back and put in its place.",
        ("hpcmoe merge study.h5",),
        _STORAGE,
    ),
    "join": Page(
        "Writes a new results file with the runs of several, as if one sweep had made them all: the "
        "parts that an array job over models leaves. They have to be made by the same program with "
        "the same settings. Runs that no part has finished are missing, and a sweep with the same options "
        "does them. A run may be in several parts if its results are the same there.",
        ("hpcmoe join study.h5 study-flash.h5 study-k3.h5 study-glm.h5 study-pro.h5",),
        _STORAGE,
    ),
    "pack": Page(
        "Writes a copy of a results file that has everything but the flow, queue and pause traces, "
        "compressed. It can be read, verified and reported like any other, but not continued by a sweep.",
        ("hpcmoe pack study.h5 -o study-small.h5",),
        _STORAGE,
    ),
    "verify": Page(
        "Checks a results file from end to end: bounds, checksums, and what must agree within each "
        "run. With --reset it marks faulty runs as missing, so that the next sweep does them again.",
        (
            "hpcmoe verify study.h5",
            "hpcmoe verify study.h5 --reset",
        ),
        {1: "something is wrong with the file"},
    ),
    "slurm render": Page(
        "Prints the batch script of a sweep: plain, one that queues itself again until the study is "
        "complete, or an array over models.",
        ("hpcmoe slurm render study.h5 --ranks 128 --time 04:00:00",),
    ),
    "slurm submit": Page(
        "Writes the batch script of a sweep beside the results file and gives it to sbatch.",
        ("hpcmoe slurm submit study.h5 --ranks 128 --time 04:00:00 --sweep '--layers 1'",),
        {1: "sbatch refuses the script"},
    ),
    "slurm status": Page(
        "Tells what became of the jobs submitted for a results file, and how far the file is.",
        ("hpcmoe slurm status study.h5",),
    ),
    "sweep": Page(
        "Simulates the study, or a part of it, into one results file. Start it plainly, with mpiexec "
        "or with srun ('python -m hpcmoe.sweep' is the same). The same command again continues a "
        "sweep that ended early.",
        (
            "hpcmoe sweep study.h5 --select 'flash/*/tp2ep16/ring_direct/*' --layers 1",
            "hpcmoe sweep study.h5 --time-limit 2:00:00 --retry-failed",
        ),
        {1: "some runs failed, or a rank died", 85: "out of time, or asked to stop: continue it", **_STORAGE},
    ),
    "completion": Page(
        "Prints a script with which a shell completes commands, options, choices, run keys part by "
        "part and names of the catalog. Candidates come from 'hpcmoe __complete', so that one's own "
        "catalog entries are offered.",
        (
            "hpcmoe completion bash",
            "hpcmoe completion fish",
        ),
    ),
    "topology add": Page(
        "Checks a topology file and keeps it in the user's catalog, so that run keys can name it.",
        ("hpcmoe topology add cluster.yaml --name cluster",),
    ),
    "topology list": Page(
        "Lists the topologies that run keys can name.",
        ("hpcmoe topology list",),
    ),
    "topology show": Page(
        "Describes a topology of the catalog or of a file: nodes, links, tiers, bisection. Draws it "
        "with --svg.",
        (
            "hpcmoe topology show t4",
            "hpcmoe topology show t4 --svg t4.svg",
        ),
    ),
    "topology check": Page(
        "Checks a topology file and names the first fault by file and field.",
        ("hpcmoe topology check cluster.yaml",),
    ),
    "topology compile": Page(
        "Writes a topology of the catalog or of a file as upstream's topology.txt.",
        ("hpcmoe topology compile t4 -o topology.txt",),
    ),
    "topology remove": Page(
        "Removes a topology of one's own from the catalog.",
        ("hpcmoe topology remove cluster",),
    ),
    "model add": Page(
        "Makes a Hugging Face config.json a model of the user's catalog, so that run keys can name it.",
        ("hpcmoe model add config.json --name mymodel",),
    ),
    "model list": Page(
        "Lists the models that run keys can name.",
        ("hpcmoe model list",),
    ),
    "model show": Page(
        "Shows layers, computation, traffic and weights of a model of the catalog or of a config.json.",
        (
            "hpcmoe model show flash",
            "hpcmoe model show flash --strategy tp4ep8 --tokens 1024",
        ),
    ),
    "model remove": Page(
        "Removes a model of one's own from the catalog.",
        ("hpcmoe model remove mymodel",),
    ),
}

# Options by what they are about; those of no group stay among the options.
_GROUPS = {
    "input files": (
        "--workload-configuration", "--system-configuration", "--network-configuration", "--flows",
        "--stdout", "--remote-memory-configuration", "--logical-topology-configuration",
        "--comm-group-configuration", "--logging-configuration", "--model-config", "--labels",
    ),
    "what is simulated": (
        "--tokens", "--layers", "--select", "--set", "--profile", "--backend", "--num-queues-per-dim",
        "--comm-scale", "--injection-scale", "--rendezvous-protocol", "--until-ns", "--no-fast-forward",
        "--placement", "--count", "--bytes", "--algorithm", "--topology", "--network", "--scaleup-rate",
        "--scaleup-delay", "--attachment-rate",
    ),
    "output": (
        "--json", "--output", "--html", "--trace", "--fct", "--no-figures", "--runs", "--no-traces",
        "--script", "--svg", "--quiet", "--report-every",
    ),
}  # fmt: skip
_FEW = 4  # a parser with so few options needs no groups


def apply(parser: argparse.ArgumentParser, name: str = "") -> None:
    """Gives every command below ``parser`` its page and its groups of options."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                apply(child, f"{name} {word}".strip())
            return
    apply_page(parser, name)


def apply_page(parser: argparse.ArgumentParser, name: str) -> None:
    """Gives one command its page and its groups of options."""
    page = PAGES.get(name)
    if page is not None:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.description = textwrap.fill(page.about, _WIDTH)
        parser.epilog = "\n".join(_epilog(page))
    _group(parser)


def _epilog(page: Page) -> Iterator[str]:
    yield "exit codes:"
    for code, meaning in sorted({**_ALWAYS, **page.codes}.items()):
        yield f"  {code:<3} {meaning}"
    yield "\nexamples:"
    for example in page.examples:
        yield "  " + " \\\n      ".join(_pieces(example))


def _pieces(example: str) -> list[str]:
    """A command line in pieces that fit, none of which ends in a blank."""
    return textwrap.wrap(example, _WIDTH - 8, break_on_hyphens=False, break_long_words=False)


def _group(parser: argparse.ArgumentParser) -> None:
    """Moves options out of argparse's one group of all of them."""
    plain = parser._optionals._group_actions
    if len(plain) <= _FEW:
        return
    for title, names in _GROUPS.items():
        chosen = [action for action in plain if set(action.option_strings) & set(names)]
        if chosen:
            group = parser.add_argument_group(title)
            group._group_actions.extend(chosen)
            plain[:] = [action for action in plain if action not in chosen]
