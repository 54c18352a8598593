export { authenticateOptions } from './gate-options';
export { readSettings } from './read-settings';
export type { SettingsOptions } from './gate-options';
export type { Environment } from './read-variables';
export type { RateLimit, Settings } from './settings';
