"""The words of a page as plain HTML, and one style sheet whose rules reach only its own classes."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import PurePosixPath

from idviz.explore import export
from idviz.explore.base import Explorable, Formula, NotebookLink
from idviz.words import capital, file_size

# Words have the colours of JupyterLab's theme, readable in light and dark; the accents are our own palette.
STYLE = """<style>
.idviz-view{--idviz-line:var(--jp-border-color2,#d9d9d9);--idviz-soft:var(--jp-layout-color2,#f5f5f5);
 --idviz-ink:var(--jp-ui-font-color1,#222);--idviz-grey:var(--jp-ui-font-color2,#666);--idviz-accent:#0072B2;
 color:var(--idviz-ink);border:1px solid var(--idviz-line);border-radius:10px;padding:13px 13px 10px;max-width:1100px;
 margin:4px 0 8px;overflow:visible;box-sizing:border-box;line-height:1.45}
.idviz-view .widget-html-content,.idviz-view .jupyter-widget-html-content{line-height:1.45;font-size:14px;width:100%}
.idviz-view .lm-Widget{overflow:visible}
.idviz-view h3.idviz-title{font-size:20px;font-weight:650;margin:0;line-height:1.25}
.idviz-view p{margin:0}
.idviz-view p.idviz-question{font-size:15px;color:var(--idviz-accent);font-weight:550;margin:3px 0 4px}
.jp-mod-dark .idviz-view p.idviz-question,[data-jp-theme-light=false] .idviz-view{--idviz-accent:#56B4E9}
.idviz-view details.idviz-prose summary{cursor:pointer;color:var(--idviz-grey);font-size:13px}
.idviz-view details.idviz-prose p{max-width:72ch;margin:4px 0 2px}
.idviz-view .idviz-panel{background:var(--idviz-soft);border-radius:8px;padding:9px 13px 7px;margin:8px 0;gap:6px}
.idviz-view .idviz-grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:6px 22px;
 margin:0;height:auto}
.idviz-view .idviz-wide{grid-column:1/-1}
.idviz-view .idviz-control{margin:0;min-width:0}
.idviz-view .idviz-input.widget-inline-hbox{display:grid;grid-template-columns:minmax(0,1fr) auto;width:100%;
 height:auto;margin:0;align-items:center;row-gap:1px}
.idviz-view .idviz-input>.widget-label{text-align:left;width:auto;max-width:none;font-size:13px;font-weight:600;
 color:var(--idviz-ink);overflow:visible;white-space:normal;line-height:17px;height:auto;margin:0;padding:3px 0 2px}
.idviz-view .idviz-input .widget-readout{grid-area:1/2;min-width:42px;text-align:right;font-size:14px;margin:0;
 height:22px;line-height:20px;font-variant-numeric:tabular-nums;overflow:visible}
.idviz-view .idviz-input .slider-container{grid-column:1/-1;margin:0 9px;height:26px;padding-top:11px;
 box-sizing:border-box}
.idviz-view .idviz-input select,.idviz-view .idviz-input textarea,.idviz-view .idviz-input input[type=text]{
 grid-column:1/-1;width:100%;box-sizing:border-box;font-size:14px;border-radius:5px}
.idviz-view .idviz-input select{height:26px}
.idviz-view .idviz-input textarea{font-size:14px;line-height:1.4;min-height:64px}
.idviz-view .noUi-connect,.idviz-view .noUi-handle{background:var(--idviz-accent)!important}
.idviz-view .noUi-handle:focus-visible,.idviz-view button:focus-visible{outline:3px solid #E69F00;outline-offset:2px}
.idviz-view .idviz-input [disabled]{opacity:.5}
.idviz-view .idviz-note{font-size:12.5px;color:var(--idviz-grey)}
.idviz-view .idviz-time{align-items:flex-end;gap:14px}
.idviz-view .idviz-time>.idviz-control{flex:1 1 auto}
.idviz-view .idviz-play{margin:0 0 -1px;width:auto;flex:none}
.idviz-view .idviz-play button{width:38px;border-radius:5px;border:1px solid var(--idviz-line);margin:0 4px 0 0;
 background:var(--jp-layout-color1,#fff);color:var(--idviz-ink)}
.idviz-view .idviz-label{font-weight:600;font-size:13px}
.idviz-view .idviz-file{gap:8px;align-items:center}
.idviz-view .idviz-file>*{margin:0;width:auto;flex:none}
.idviz-view .idviz-remove{width:30px!important}
.idviz-view .idviz-body{display:flex;flex-flow:row wrap;gap:8px 14px;align-items:flex-start}
.idviz-view .idviz-picture{flex:10 1 588px;min-width:0;max-width:830px}
.idviz-view .idviz-picture img{width:100%;max-width:816px;height:auto;border-radius:4px;margin:0}
.idviz-view .idviz-side{flex:1 1 215px;min-width:0;gap:10px;padding-top:4px}
.idviz-view .idviz-side h4,.idviz-view h4.idviz-head{font-size:12px;letter-spacing:.05em;text-transform:uppercase;
 color:var(--idviz-grey);font-weight:600;margin:0 0 3px}
.idviz-view .idviz-try{width:100%;height:auto;min-height:30px;white-space:normal;text-align:left;line-height:1.3;
 padding:5px 10px;margin:0 0 5px;border-radius:6px;border:1px solid var(--idviz-line);font-size:13.5px;
 background:var(--jp-layout-color1,#fff);color:var(--idviz-ink)}
.idviz-view .idviz-try:hover{border-color:var(--idviz-accent)}
.idviz-view .idviz-look{border-left:3px solid #E69F00;padding:2px 0 2px 10px}
.idviz-view .idviz-problem{border-left:4px solid #D55E00;background:var(--idviz-soft);border-radius:4px;
 padding:7px 12px;margin:0 0 8px}
.idviz-view .idviz-warning{border-left:4px solid #E69F00;padding:3px 12px;margin:0 0 6px}
.idviz-view .idviz-bar{width:100%;margin:0 0 8px}
.idviz-view .idviz-formula{margin:4px 0 0}
.idviz-view .idviz-formula .widget-html-content{overflow-x:auto;overflow-y:hidden;padding:0 0 4px;height:auto}
.idviz-view .idviz-formula mjx-container{margin:4px 0!important;text-align:left!important}
.idviz-view .idviz-texts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(340px,100%),1fr));
 gap:10px 22px;margin:10px 0 0}
.idviz-view .idviz-texts>div{border-radius:5px;padding:2px 6px 6px;min-width:0}
.idviz-view .idviz-foot{border-top:1px solid var(--idviz-line);padding-top:8px;margin:10px 0 0;align-items:center;
 flex-flow:row wrap;gap:6px}
.idviz-view .idviz-foot .jupyter-button{width:auto;min-width:52px;height:28px;line-height:26px;margin:0;
 border-radius:5px;border:1px solid var(--idviz-line);background:var(--jp-layout-color1,#fff);color:var(--idviz-ink)}
.idviz-view .idviz-ready{display:inline-block;background:var(--idviz-accent);color:#fff!important;border-radius:5px;
 padding:3px 11px;font-weight:600;text-decoration:none!important}
.jp-mod-dark .idviz-view .idviz-ready,[data-jp-theme-light=false] .idviz-view .idviz-ready{color:#111!important}
.idviz-view .idviz-where{width:100%;margin:0}
.idviz-view .idviz-where .widget-html-content{color:var(--idviz-grey);font-size:13px}
.idviz-view a{color:var(--idviz-accent)}
.idviz-view .idviz-more{width:auto;align-self:flex-start;background:none;box-shadow:none!important;border:0;
 padding:0 6px 0 0;height:24px;line-height:24px;margin:0;color:var(--idviz-grey);font-size:13px;font-weight:600}
.jp-OutputArea-child:has(> .jp-OutputArea-output .idviz-still){display:none}
</style>"""


def header(explorable: Explorable) -> str:
    """The style sheet, title, question and folded prose."""
    escape = html.escape
    return (
        f'{STYLE}<h3 class="idviz-title">{escape(explorable.title)}</h3>'
        f'<p class="idviz-question">{escape(explorable.question)}</p>'
        f'<details class="idviz-prose"><summary>What is this?</summary><p>{escape(explorable.prose)}</p></details>'
    )


def caption(text: str) -> str:
    """The live caption; a screen reader reads it when it has nothing else to read."""
    return f'<h4>What you see</h4><p role="status" aria-live="polite">{html.escape(text)}</p>'


def problem(text: str) -> str:
    """A message that something was refused or failed; nothing for an empty text."""
    return f'<p class="idviz-problem" role="alert">{html.escape(capital(text))}</p>' if text else ""


def warnings(texts: Sequence[str]) -> str:
    """The warnings of a result."""
    return "".join(f'<p class="idviz-warning" role="status">{html.escape(text)}</p>' for text in texts)


def look_for(text: str) -> str:
    """What to look for after a Try-this button; nothing for an empty text."""
    return f'<p class="idviz-look" role="status">{html.escape(text)}</p>' if text else ""


def formula(equation: Formula) -> tuple[str, str]:
    """Symbols and numbers, in two pieces: a moved slider typesets only the numbers again."""
    head = f'<h4 class="idviz-head">The formula · {html.escape(equation.tag)}</h4>'
    return f"{head}$$\\displaystyle {equation.symbols}$$", f"$$\\displaystyle {equation.numbers}$$"


def texts(parts: Sequence[str], paper: str) -> str:
    """Weights on tokens, side by side where there is room, on paper of the picture's colour in any theme."""
    cards = "".join(f'<div style="background:{paper}">{part}</div>' for part in parts)
    return f'<div class="idviz-texts">{cards}</div>' if cards else ""


def place(link: NotebookLink) -> str:
    """Where the course explains the page: a link, or a plain mention in that very notebook."""
    section = html.escape(link.section)
    here = PurePosixPath(os.environ.get("JPY_SESSION_NAME", "")).stem
    if here == link.notebook:
        return f"Explained in this notebook, section {section}"
    name = html.escape(link.notebook, quote=True)
    return f'Explained in <a href="{name}.ipynb" target="_blank">notebook {name}</a>, section {section}'


def data_link(name: str, data: bytes, kind: str) -> str:
    """A download link that contains the file itself."""
    size, address = file_size(len(data)), export.data_url(data, kind)
    return f'<a class="idviz-ready" download="{html.escape(name, quote=True)}" href="{address}">↓ {name} · {size}</a>'


def static(explorable: Explorable, picture: bytes, text: str) -> str:
    """What a page without a kernel shows: the picture, its caption, and where to find the live one."""
    escape = html.escape
    return (
        f'<figure class="idviz-still" style="margin:1em 0;max-width:816px"><img alt="{escape(text, quote=True)}" '
        f'style="max-width:100%;height:auto" src="{export.data_url(picture)}">'
        f"<figcaption><strong>{escape(explorable.title)}.</strong> {escape(text)} "
        f"(A still picture; in a running notebook, it has sliders.)</figcaption></figure>"
    )
