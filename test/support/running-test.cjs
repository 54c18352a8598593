'use strict';
/**
 * Replaces `node:async_hooks` for jest-circus (see jest.config.ts), which only asks it for the running test. Before Node
 * 24 an AsyncLocalStorage slows down every promise of its process, and every test file leaves one behind. No test here is
 * concurrent, so a variable will do.
 */
class RunningTest {
  #store;

  getStore() {
    return this.#store;
  }

  async run(store, callback) {
    const outer = this.#store;
    this.#store = store;
    try {
      return await callback();
    } finally {
      this.#store = outer;
    }
  }
}

module.exports = { ...require('async_hooks'), AsyncLocalStorage: RunningTest };
