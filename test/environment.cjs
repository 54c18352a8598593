'use strict';
// jest-circus makes an AsyncLocalStorage for each test file and leaves it switched on: before Node 24 every promise of a
// worker then pays for each file that has run in it, and what those files have left is never freed.
const hooks = require('node:async_hooks');
const { TestEnvironment } = require('jest-environment-node');

const switchedOn = new Set();

hooks.AsyncLocalStorage = class extends hooks.AsyncLocalStorage {
  run(...args) {
    switchedOn.add(this);
    return super.run(...args);
  }
};

module.exports = class extends TestEnvironment {
  async teardown() {
    for (const storage of switchedOn) storage.disable();
    switchedOn.clear();
    await super.teardown();
  }
};
