// Reads panels as a person does. Standard input is a list of {panel, answers: {refId: [series]}}, standard output a list
// of {title, frames: [{fields: [{name, type, colour, cells}]}]}.
'use strict';

console.log = console.warn = console.info = () => {}; // packages talk; standard output is the answer

const { createRequire } = require('node:module');
const path = require('node:path');
const packages = createRequire(path.join(process.env.GRAFANA_PACKAGES || __dirname, 'package.json'));

const { JSDOM } = packages('jsdom');
const { window } = new JSDOM('<!doctype html><body></body>', { url: 'http://localhost/', pretendToBeVisual: true });
for (const name of ['window', 'document', 'navigator', 'localStorage', 'HTMLElement', 'Element', 'Node', 'SVGElement']) {
  Object.defineProperty(global, name, { value: name === 'window' ? window : window[name], configurable: true });
}
window.matchMedia = () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {} });

const data = packages('@grafana/data');
const { framesFor, describe } = require('./frames.cjs')(data);

async function main() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const theme = data.createTheme({ colors: { mode: process.env.GRAFANA_THEME || 'dark' } });
  const questions = JSON.parse(Buffer.concat(chunks).toString());
  const read_ = [];
  for (const question of questions) {
    read_.push({ title: question.panel.title, frames: describe(await framesFor(question, theme), theme) });
  }
  process.stdout.write(JSON.stringify(read_));
}

main().catch((error) => { console.error(error); process.exit(1); });
