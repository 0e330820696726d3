"""Looks inside one run: its time line, its links and flows, and the critical path of a layer.

Everything is computed from the records of a results file; nothing is simulated.
"""

from hpcmoe.inspect_run.compare import Comparison, compare_runs
from hpcmoe.inspect_run.inspection import Inspection, inspect_run
from hpcmoe.inspect_run.perfetto import trace_events

__all__ = ["Comparison", "Inspection", "compare_runs", "inspect_run", "trace_events"]
