"""Renders tables of analysis as Markdown, CSV and one self-contained HTML page."""

from hpcmoe.reporting.document import Document

__all__ = ["Document"]
