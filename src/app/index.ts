import { APP_PACKAGES, requirePackages } from 'tillgate/internal';

// Runs before the modules below are loaded: the compiler keeps the order in CommonJS.
requirePackages('@tillgate/app', APP_PACKAGES);

export type { ResourceName } from './commerce/resources';
export { createApp } from './create-app';
export type { App, AppOptions } from './create-app';
export type { ComponentStates, Readiness } from './admin';
export { createLog } from './log';
export type { LogOptions, RequestEvent } from './log';
export { startApi } from './start-api';
export type { RunningApi } from './start-api';
export { loggablePath } from 'tillgate/internal';
export { authenticateOptions, readSettings } from 'tillgate/env';
export type { Environment, Settings, SettingsOptions } from 'tillgate/env';
export type { RateLimit } from 'tillgate/env';
