import type { configurationAdvice } from 'tillgate/internal';

type Advice = NonNullable<ReturnType<typeof configurationAdvice>>;

/** Advice in one sentence, with the variable that sets its option. */
export function wordAdvice({ why, option, value, otherwise }: Advice): string {
  const ways = [...(option ? [`set ${assignment(option, value)}`] : []), ...(otherwise ? [otherwise] : [])];
  return ways.length === 0 ? why : `${why}: ${ways.join(', or ')}`;
}

const VARIABLES = {
  issuer: 'TILLGATE_ISSUER',
  audience: 'TILLGATE_AUDIENCE',
  preset: 'TILLGATE_PRESET',
  generationClaim: 'TILLGATE_GENERATION_CLAIM',
  maxTokenAgeSeconds: 'TILLGATE_MAX_TOKEN_AGE_SECONDS',
  'scopes.from': 'TILLGATE_SCOPE_CLAIMS',
  'scopes.map': 'TILLGATE_SCOPE_MAP',
} as const;

function assignment(option: NonNullable<Advice['option']>, value: unknown): string {
  if (option === 'opaque') return 'TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET';
  return `${VARIABLES[option]}=${textOf(value)}`;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const names = Array.isArray(value) && value.every((name) => typeof name === 'string') ? value : undefined;
  if (names) return names.join(',');
  const json = JSON.stringify(value);
  return typeof value === 'object' ? shellQuoted(json) : json;
}

/** Pasted into a shell, names of the token must stay text. */
function shellQuoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}
