"""Readers and writers of the files and output lines of ASTRA-sim and its ns-3 network."""

from hpcmoe.topology_text import read_topology, write_topology
from hpcmoe.upstream.config import NetworkConfig, read_network_config, write_network_config
from hpcmoe.upstream.json_files import (
    SystemConfig,
    read_groups,
    read_logical_dims,
    read_memory,
    read_system,
    write_logical_dims,
    write_memory,
    write_system,
)
from hpcmoe.upstream.output import fct_lines, pfc_lines, rank_lines
from hpcmoe.upstream.reports import read_fct, read_pfc, read_qlen, read_rank_report
from hpcmoe.upstream.text_files import (
    read_cc_policy,
    read_flows,
    write_cc_policy,
)

__all__ = [
    "NetworkConfig",
    "SystemConfig",
    "fct_lines",
    "pfc_lines",
    "rank_lines",
    "read_cc_policy",
    "read_fct",
    "read_flows",
    "read_groups",
    "read_logical_dims",
    "read_memory",
    "read_network_config",
    "read_pfc",
    "read_qlen",
    "read_rank_report",
    "read_system",
    "read_topology",
    "write_cc_policy",
    "write_logical_dims",
    "write_memory",
    "write_network_config",
    "write_system",
    "write_topology",
]
