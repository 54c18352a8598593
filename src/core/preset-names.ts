/** The issuer presets there are; what each of them means is `token/presets.ts`. */
export const PRESET_NAMES = [
  'rfc9068',
  'identityserver',
  'keycloak',
  'auth0',
  'okta',
  'entra',
  'cognito',
  'hydra',
  'openiddict',
  'ping',
] as const;

/** Name of an issuer preset. */
export type PresetName = (typeof PRESET_NAMES)[number];
