'use strict';
// Loads one entry of the package in a process of its own and says what that has done: `node probe.cjs ENTRY import`.
const { IncomingMessage, ServerResponse } = require('node:http');
const { sep } = require('node:path');

const [entry, way] = process.argv.slice(2);

/** What loading a package must leave as it is. */
function processState() {
  const shared = [Object, Array, Function, Promise, Error, IncomingMessage, ServerResponse];
  return {
    globals: Reflect.ownKeys(globalThis).map(String),
    listeners: process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`),
    variables: JSON.stringify(process.env),
    prototypes: shared.map(({ prototype }) => Reflect.ownKeys(prototype).map(String)),
    resources: process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name.startsWith('TCP')),
  };
}

/** `express` of `node_modules/express/index.js`; the installed package itself is a package too. */
function packageOf(path) {
  const [, inside] = path.split(new RegExp(`.*\\${sep}node_modules\\${sep}`));
  return inside
    ?.split(sep)
    .slice(0, inside.startsWith('@') ? 2 : 1)
    .join('/');
}

async function main() {
  const before = processState();
  const loaded = way === 'require' ? require(entry) : await import(entry);
  const after = processState();
  const changed = Object.keys(before).filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  // An import of CommonJS has these besides the names.
  const names = Object.keys(loaded).filter((name) => !['default', 'module.exports', '__esModule'].includes(name));
  const packages = new Set(Object.keys(require.cache).map(packageOf).filter(Boolean));
  console.log(JSON.stringify({ names: names.sort(), changed, packages: [...packages].sort() }));
}

main();
