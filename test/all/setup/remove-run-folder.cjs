'use strict';
const { rmSync } = require('node:fs');

module.exports = function removeRunFolder() {
  rmSync(process.env['RUN_FOLDER'], { recursive: true, force: true });
};
