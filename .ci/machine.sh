# Sourced by run-tests, hpcmoe-quickstart and .ci/run: finds Python and a compiler, installing what
# is missing where it may. Expects to be in the root of the checkout.

say() { printf '\n== %s\n' "$*"; }

die() {
  printf '%s: error: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# find_python: sets PYTHON to the first interpreter of at least 3.11, or to nothing.
find_python() {
  local name
  for name in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      PYTHON=$name
      return
    fi
  done
  PYTHON=
}

has_python_header() {
  "$PYTHON" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'
}

# Servers stand where a user's PATH need not look.
has_program() {
  PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null
}

# missing_packages [EXTRA...]: prints the Debian packages that this machine still needs.
missing_packages() {
  command -v g++ >/dev/null || echo g++
  if [ -z "$PYTHON" ]; then
    echo python3 python3-venv python3-dev
  else
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    has_python_header || echo python3-dev
  fi
  local extra
  for extra in "$@"; do
    case $extra in
      doctest-dev) [ -e /usr/include/doctest/doctest.h ] || echo doctest-dev ;;
      libns3-dev) [ -e /usr/include/ns3/core-config.h ] || echo libns3-dev ;;
      libhdf5-openmpi-dev) ls /usr/lib/*/hdf5/openmpi/libhdf5.so >/dev/null 2>&1 || echo "$extra" ;;
      openmpi-bin) command -v mpiexec.openmpi >/dev/null || echo "$extra" ;;
      chromium) command -v chromium >/dev/null || echo "$extra" ;;
      chromium-driver) command -v chromedriver >/dev/null || echo "$extra" ;;
      hdf5-tools) command -v h5dump >/dev/null || echo "$extra" ;;
      slurmctld | slurmd | munge) has_program "$extra" || echo "$extra" ;;
      slurm-client) command -v srun >/dev/null || echo "$extra" ;;
      *) die "no check is known for the package $extra" ;;
    esac
  done
}

# need_machine [EXTRA...]: makes sure of Python, venv, a C++ compiler and the extra packages.
need_machine() {
  find_python
  local missing
  missing=$(missing_packages "$@" | xargs)
  if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || die "this machine lacks what Debian calls: $missing"
    [ "$(id -u)" = 0 ] || die "packages are missing; as root: apt-get install $missing"
    say "apt-get install $missing"
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    find_python
  fi
  [ -n "$PYTHON" ] || die "Python 3.11 or later is needed; name one in the variable PYTHON"
}

# use_venv FOLDER: creates the virtual environment if need be and puts it first in PATH.
use_venv() {
  if ! "$1/bin/python" -c 'import pip' 2>/dev/null; then
    rm -rf "$1"
    "$PYTHON" -m venv "$1"
  fi
  VIRTUAL_ENV=$(cd "$1" && pwd)
  export VIRTUAL_ENV PATH="$VIRTUAL_ENV/bin:$PATH"
}
