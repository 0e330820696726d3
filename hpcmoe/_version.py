"""The one home of the version: packaging, `--version` and the results file all read it here."""

__version__ = "0.1.0"

try:
    from hpcmoe._build import BUILD_FLAGS as __build_flags__
    from hpcmoe._build import GIT_SHA as __git_sha__
except ImportError:  # a tree that nothing was built in
    __build_flags__ = __git_sha__ = "unknown"
