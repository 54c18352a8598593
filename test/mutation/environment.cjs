'use strict';
const { TestEnvironment } = require('jest-environment-node');

/** Hands the loaded suites to `runner.mjs`, which runs their tests itself, and keeps Jest waiting. */
module.exports = class extends TestEnvironment {
  #session;

  constructor(config, context) {
    super(config, context);
    this.global.__stryker__ = {};
    this.#session = { global: this.global, stryker: this.global.__stryker__ };
  }

  handleTestEvent(event, state) {
    const { uncaught } = this.#session;
    if (event.name === 'error') uncaught?.set(event.promise ?? event.error, event.error);
    // A rejection that is handled later, but during the same test.
    if (event.name === 'error_handled') uncaught?.delete(event.promise);
    if (event.name !== 'run_start') return undefined;
    this.#session.state = state;
    globalThis[Symbol.for('mutation.session')](this.#session);
    return new Promise(() => undefined);
  }
};
