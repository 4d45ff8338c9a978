"""An application made with Vue, its router, and Vite, whose pages all have the same HTML as sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.crawl.run.conftest import Runner
from tests.crawl.run.websites import Answer, Website

BUILD_SECONDS = 300
INDEX = """<!doctype html><html lang="en"><head><title>Harbor</title></head>
<body><div id="app"></div><script type="module" src="/main.js"></script></body></html>"""
MAIN = """
import { createApp, h } from 'vue'
import { RouterLink, RouterView, createRouter, createWebHistory } from 'vue-router'
const Home = {render: () => h('main', [h('h1', 'Harbor'), h('p', 'Where ships moor.')])}
const routes = [
  {path: '/', component: Home},
  {path: '/tides', component: () => import('./tides.js')},
  {path: '/fees', component: () => import('./fees.js')},
]
const router = createRouter({history: createWebHistory(), routes})
router.afterEach(to => { document.title = `Harbor ${to.path}` })
const link = path => h(RouterLink, {to: path}, () => path)
createApp({render: () => [h('nav', routes.map(route => link(route.path))), h(RouterView)]}).use(router).mount('#app')
"""
TIDES = """
import { h } from 'vue'
export default () => h('main', [h('h1', 'Tides'), h('p', 'A barque enters only with the flood.')])
"""
FEES = """
import { h, ref } from 'vue'
export default {
  setup() {
    const fee = ref('')
    fetch('/api/fees.json').then(response => response.json()).then(data => { fee.value = data.fee })
    return () => h('main', [h('h1', 'Fees'), h('p', `Mooring costs ${fee.value} a day.`)])
  },
}
"""


@pytest.fixture(scope="module")
def built(packages: Path) -> Path:
    """The folder of the built application."""
    folder = packages.parent
    for name, text in (("index.html", INDEX), ("main.js", MAIN), ("tides.js", TIDES), ("fees.js", FEES)):
        (folder / name).write_text(text)
    done = subprocess.run(
        ["node", "node_modules/vite/bin/vite.js", "build"], cwd=folder, capture_output=True, text=True,
        timeout=BUILD_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "dist"


def test_each_url_of_an_application_becomes_a_page(runner: Runner, website: Website, built: Path) -> None:
    index = Answer((built / "index.html").read_bytes(), headers={"Content-Type": "text/html"})
    website.pages |= dict.fromkeys(("/", "/tides", "/fees"), index)
    for file in (built / "assets").iterdir():
        website.pages[f"/assets/{file.name}"] = Answer(file.read_bytes(), headers={"Content-Type": "text/javascript"})
    website.pages["/api/fees.json"] = Answer(b'{"fee": "eleven crowns"}', headers={"Content-Type": "application/json"})

    run = runner.run(runner.add())

    contents = {path: document["content"] for path, document in runner.documents().items()}
    assert (contents.keys(), runner.left_out(run)) == ({"/", "/tides", "/fees"}, {})
    assert run.rendered == 3
    assert "Where ships moor." in contents["/"]
    assert "only with the flood" in contents["/tides"]
    assert "Mooring costs eleven crowns a day." in contents["/fees"]
