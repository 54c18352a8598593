import { APP_PACKAGES, requirePackages } from '../core/required-packages';

// Runs before the modules below are loaded: the compiler keeps the order in CommonJS.
requirePackages('tillgate/app', APP_PACKAGES);

export type { ResourceName } from './commerce/resources';
export { createApp } from './create-app';
export type { App, AppOptions } from './create-app';
export type { ComponentStates, Readiness } from './admin';
export { createLog } from './log';
export type { LogOptions, RequestEvent } from './log';
export { startApi } from './start-api';
export type { RunningApi } from './start-api';
export { loggablePath } from '../core/logger';
export { authenticateOptions, readSettings } from '../settings/settings';
export type { Environment, Settings, SettingsOptions } from '../settings/settings';
export type { RateLimit } from '../settings/variable-types';
