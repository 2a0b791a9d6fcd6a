"""The about page: the paper, what is ours, versions, licence."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import streamlit as st

import idviz

PACKAGES = ("numpy", "scipy", "matplotlib", "streamlit", "torch")


def about() -> None:
    """The page."""
    st.title("About", anchor=False)
    st.header("The paper", anchor=False)
    st.markdown(
        "“Interdomain Attention: Beyond Token-Level Key-Value Memory”, Kiyohara, Zhu, El Hassanin, Sun, Chen, Bhatt, "
        "Li, arXiv 2605.24330 (May 2026), CC BY 4.0. "
        "[arxiv.org/abs/2605.24330](https://arxiv.org/abs/2605.24330)"
    )
    st.header("What is ours", anchor=False)
    st.markdown(
        "idviz is an independent teaching companion, not the authors' code. The text, the pictures and the programs "
        "are ours, written from public descriptions of the paper. Where these leave a detail open, we chose, and the "
        "notebooks say what and why. Numbers that the paper reports are marked as the paper's; all others are "
        "computed or measured here."
    )
    st.markdown(
        "The recordings in *Memory of a signal* (EEG, membrane potential) are sample data that ships with matplotlib."
    )
    st.header("Your data", anchor=False)
    st.markdown(
        "This app runs on your machine, and only your machine can reach it. Text and files that you enter stay in its "
        "memory until you close it; a link to a view contains your text, but not your files. Nothing is sent anywhere, "
        "and no usage statistics are kept."
    )
    st.header("Versions", anchor=False)
    rows = {"idviz": idviz.__version__, "Python": platform.python_version()}
    rows |= {package: _version(package) for package in PACKAGES}
    lines = "\n".join(f"| {name} | {number} |" for name, number in rows.items())
    st.markdown(f"| | version |\n| --- | --- |\n{lines}")
    st.header("Licence", anchor=False)
    st.markdown("idviz is free software under the MIT licence. The paper belongs to its authors, under CC BY 4.0.")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
