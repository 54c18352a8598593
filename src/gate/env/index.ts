export { authenticateOptions, readSettings } from './settings';
export type { Environment, Settings, SettingsOptions } from './settings';
export type { RateLimit } from './variables';
