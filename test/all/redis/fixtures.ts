import type { Logger } from '../../../src/core/logger';

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };
