#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Makes the site: python3 docs/build.py folder

The pages of this folder and the manuals become HTML, by python3-markdown and mandoc of Debian. Nothing is fetched from elsewhere when a page is read. A link that
leads nowhere is an error. Last line: "N pages, N links".
"""
import html
import os
import re
import shutil
import subprocess
import sys

import markdown  # Debian: python3-markdown

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PAGES = [("start", "Start"), ("concepts", "Concepts"), ("recipes", "Recipes"), ("migrating", "From other locks"), ("http", "HTTP"), ("operations", "Operations")]
MANUALS = ["client/cli/redlock.1", "daemon/redlockd.8", "conf/redlockd.yaml.5", "proto/redlock-protocol.7", "client/lib/libredlock.3"]
MORE = [("figures", "Figures", "tests/bench/RESULTS.md"), ("tests", "Tests", "tests/RESULTS.md"), ("python", "Python", "client/python/README.md"),
        ("node", "Node", "client/node/README.md"), ("go", "Go", "client/go/README.md"), ("java", "Java", "client/java/README.md"),
        ("fence", "Fences", "contrib/fence/README.md"), ("terraform", "Terraform", "contrib/terraform/README.md"), ("decides", "How it decides", "daemon/core/ALGORITHMS.md")]
STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --back: #fff; --faint: #59636e; --line: #d1d9e0; --code: #f6f8fa; --link: #0969da }
@media (prefers-color-scheme: dark) { :root { --text: #f0f6fc; --back: #0d1117; --faint: #9198a1; --line: #3d444d; --code: #151b23; --link: #4493f8 } }
body { margin: 0 auto; max-width: 60rem; padding: 0 1rem 3rem; font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--back) }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .8rem 0; border-bottom: 1px solid var(--line) }
a { color: var(--link) }
nav a, footer { font-size: .9rem }
nav [aria-current] { color: var(--text); font-weight: 600; text-decoration: none }
pre, code { font: .88em/1.45 ui-monospace, monospace; background: var(--code) }
pre { padding: .7rem; overflow: auto; border-radius: .3rem }
table.Nm td, table.head td, table.foot td { border: 0 }
a.permalink { color: inherit; text-decoration: none }
table { border-collapse: collapse; display: block; overflow: auto }
td, th { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top }
img { max-width: 100% }
footer { margin-top: 3rem; color: var(--faint) }
"""


def page(name, title, body, around):
    links = "".join('<a href="%s.html"%s>%s</a>' % (key, ' aria-current="page"' if key == name else "", html.escape(text)) for key, text in around)
    return """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>%s · redlockd</title>
<style>%s</style></head><body><nav aria-label="Pages">%s</nav><main>
%s
</main><footer>redlockd, a lock manager for hosts. BSD-2-Clause.</footer></body></html>
""" % (html.escape(title), STYLE, links, body)


def from_markdown(text):
    text = re.sub(r"^<!--.*?-->$", "", text, flags=re.M)
    return markdown.markdown(text, extensions=["tables", "fenced_code", "toc"], output_format="html")


def from_manual(path):
    return subprocess.run(["mandoc", "-T", "html", "-O", "fragment", path], check=True, stdout=subprocess.PIPE, text=True).stdout


def relinked(body, source, known):
    """Links to files of the source lead to their pages. The name of a file that has no page stays, without its link."""
    def replace(match):
        target, _, mark = match[1].partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), target))
        stem = known.get(path) or known.get(path + "/README.md")
        if stem:
            return '<a href="%s.html%s">%s</a>' % (stem, mark and "#" + mark, match[2])
        return match[2] if os.path.exists(os.path.join(ROOT, path)) else match[0]
    return re.sub(r'<a href="([^"]*)">(.*?)</a>', replace, body, flags=re.S)


def pictured(body, source, folder):
    """Copies the pictures that a page shows."""
    def replace(match):
        shutil.copy(os.path.join(ROOT, os.path.dirname(source), match[1]), folder)
        return 'src="%s"' % os.path.basename(match[1])
    return re.sub(r'src="([^":]*)"', replace, body)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    more = [row for row in MORE if os.path.exists(os.path.join(ROOT, row[2]))]
    manuals = [(os.path.splitext(os.path.basename(path))[0], "%s(%s)" % tuple(os.path.basename(path).rsplit(".", 1)), path) for path in MANUALS]
    known = {"docs/%s.md" % name: name for name, _ in PAGES} | {path: name for name, _, path in more + manuals} | {"README.md": "start"}
    around = PAGES + [(name, title) for name, title, _ in manuals + more]
    made = {}
    for name, title, path in [(name, title, "docs/%s.md" % name) for name, title in PAGES] + manuals + more:
        with open(os.path.join(ROOT, path), encoding="utf-8") as source:
            body = from_markdown(source.read()) if path.endswith(".md") else from_manual(os.path.join(ROOT, path))
        made[name] = page(name, title, pictured(relinked(body, path, known), path, folder), around)
    for name, text in made.items():
        with open(os.path.join(folder, name + ".html"), "w", encoding="utf-8") as out:
            out.write(text)
    shutil.copy(os.path.join(folder, "start.html"), os.path.join(folder, "index.html"))
    links, dead = 0, []
    for name, text in made.items():
        marks = {key: set(re.findall(r' id="([^"]*)"', other)) for key, other in made.items()}
        if re.search(r'<(script|link|img|iframe)[^>]*(src|href)="(https?:)?//', text):
            dead.append("%s fetches something from elsewhere" % name)
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            links += 1
            where, _, mark = target.partition("#")
            if re.match(r"https?:|mailto:", target):
                continue
            stem = where[:-5] if where.endswith(".html") else name if not where else None
            if stem is None and not os.path.exists(os.path.join(folder, where)) or stem is not None and stem not in made or \
                    mark and html.unescape(mark) not in {html.unescape(one) for one in marks[stem]}:
                dead.append("%s: %s leads nowhere" % (name, target))
    for line in dead:
        print(line)
    print("%d pages, %d links" % (len(made), links))
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
