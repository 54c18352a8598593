/** Name of an issuer preset; what each of them means is in `token/presets.ts`. */
export type PresetName =
  'rfc9068' | 'identityserver' | 'keycloak' | 'auth0' | 'okta' | 'entra' | 'cognito' | 'hydra' | 'openiddict' | 'ping';

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
] as const satisfies readonly PresetName[];
