'use strict';
// jest-circus makes an AsyncLocalStorage for each test file and leaves it switched on: before Node 24 every promise of a
// worker then pays for each file that has run in it, and what those files have left is never freed.
const { AsyncLocalStorage } = require('node:async_hooks');
const { TestEnvironment } = require('jest-environment-node');

const { run } = AsyncLocalStorage.prototype;
const switchedOn = new Set();

AsyncLocalStorage.prototype.run = function runAndRemember(...args) {
  switchedOn.add(this);
  return run.apply(this, args);
};

module.exports = class extends TestEnvironment {
  async teardown() {
    for (const storage of switchedOn) storage.disable();
    switchedOn.clear();
    await super.teardown();
  }
};
