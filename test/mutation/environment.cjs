'use strict';
const { TestEnvironment } = require('jest-environment-node');

/** Tells `all-suites.ts` which tests are wanted, and skips the rest of the tests after the first that fails. */
module.exports = class extends TestEnvironment {
  #failed = false;

  constructor(config, context) {
    super(config, context);
    // Stryker escapes the names of tests for use in a regular expression.
    this.global.testNamePattern = config.globalConfig.testNamePattern?.replace(/\\(.)/g, '$1');
  }

  handleTestEvent(event) {
    if (event.name === 'test_done' && event.test.errors.length > 0) this.#failed = true;
    if (event.name === 'test_start' && this.#failed) event.test.mode = 'skip';
  }
};
