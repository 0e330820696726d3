"""Texts as HDF5 stores them."""

from __future__ import annotations

import h5py
import numpy as np


def text_scalar(text: str) -> np.ndarray:
    """A scalar of fixed length in UTF-8."""
    data = text.encode()
    return np.array(data, h5py.string_dtype("utf-8", max(len(data), 1)))
