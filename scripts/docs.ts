import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../src/cli/command-table';
import type { CommandEntry } from '../src/cli/command';
import type { Option as OptionRow } from '../src/gate/core/options';
import { REASONS } from '../src/gate/core/reasons';
import { OPAQUE_INVALID_TOKEN } from '../src/gate/core/reasons';
import type { ReasonRow } from '../src/gate/core/reasons';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../src/gate/verifier/read-options';
import { VARIABLES } from '../src/gate/env/variables';
import { PRESETS } from '../src/gate/token/presets';
import type { Preset } from '../src/gate/token/presets';
import type { Seen } from '../test/all/servers/run-server';
import { METRIC_ROWS } from './metric-rows';
import { pictureOf, ROOMS } from './rooms';

/*
 * `npm run docs` writes the sections of docs/ that repeat the code, each between two comments. test/repository/docs fails when a page
 * is out of date.
 */

const ROOT = join(__dirname, '..');

/** Pages with sections from the code. */
export const PAGES = ['configuration', 'issuers', 'operations', 'reasons', 'scaffold', 'maintainers/architecture'].map(
  (name) => `docs/${name}.md`,
);

/** What `npm run servers` has recorded. */
const SEEN = join(ROOT, 'test/all/servers/seen.json');

const SECTIONS: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(ROOMS.map((room) => [`picture of ${room}`, () => pictureOf(room)])),
  'options that you may need': () => optionTable((name) => COMMON_OPTIONS.includes(name)),
  'options that are rarely needed': () => optionTable((name) => !COMMON_OPTIONS.includes(name)),
  variables: () =>
    table(
      ['variable', 'default', 'meaning'],
      VARIABLES.map(({ name, fallback, isSecret, meaning, sets }) => [
        isSecret ? `${code(name)}, ${code(`${name}_FILE`)}` : code(name),
        'text' in fallback ? code(fallback.text) : fallback.words,
        meaning ?? meaningOfOption(sets),
      ]),
    ),
  'reason advice': () => adviceList(ALL_REASONS),
  presets: () =>
    table(
      ['`preset`', '`typ`', 'client id', 'scopes', 'generation, else `iat`'],
      Object.entries<Preset>(PRESETS).map(([name, preset]) => [
        code(name),
        preset.types.map((type) => (type === undefined ? 'absent' : code(type))).join(', '),
        `${preset.clientIdClaims.map(code).join(', ')}${preset.clientCanBeSubject ? ', else `sub`' : ''}`,
        preset.scopeClaims.map(code).join(', '),
        code(preset.stampedClaim),
      ]),
    ),
  'running servers': () => serversTable(JSON.parse(readFileSync(SEEN, 'utf8')) as Seen[]),
  metrics: () =>
    table(
      ['OpenTelemetry', 'Prometheus', 'kind, unit', 'attributes', 'meaning', 'look when'],
      METRIC_ROWS.map(({ name, prometheus, kind, unit, attributes, meaning, worry }) => [
        code(name),
        code(prometheus),
        `${kind}, ${unit}`,
        attributes.map(code).join(', ') || 'none',
        meaning,
        worry,
      ]),
    ),
  commands: () =>
    table(
      ['command', 'what it does', 'options'],
      COMMANDS.flatMap((entry) => commandRows(entry)),
    ),
};

/** A page as it should be, from the page as it is. */
export function withSections(page: string): string {
  return page.replace(
    /(<!-- ([a-z ]+): written by npm run docs -->\n\n<!-- prettier-ignore-start -->\n)[^]*?(\n<!-- prettier-ignore-end -->)/g,
    (_all, start: string, name: string, end: string) => {
      const section = SECTIONS[name];
      if (!section) throw new Error(`no section "${name}": it must be one of ${Object.keys(SECTIONS).join(', ')}`);
      return `${start}\n${section()}\n${end}`;
    },
  );
}

interface Option {
  readonly isRequired: boolean;
  readonly about: string;
}

/** Every member with a comment of the files that declare the options. */
function declaredOptions(): ReadonlyMap<string, Option> {
  const source = ['src/gate/core/options.ts', 'src/gate/verifier/options.ts']
    .filter((path) => existsSync(join(ROOT, path)))
    .map((path) => readFileSync(join(ROOT, path), 'utf8'))
    .join('\n');
  const members = source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\s+readonly (\w+)(\??): /g);
  // The first one of a name is that of the options.
  return new Map(
    [...members]
      .reverse()
      .map(([, comment = '', name = '', optional]) => [
        name,
        { isRequired: optional === '', about: comment.replace(/\s*\n\s*\* ?/g, ' ').trim() },
      ]),
  );
}

/** Options with a section or page of their own. */
const SECTION_OF: Readonly<Record<string, string>> = {
  preset: 'issuers.md',
  scopes: '#scopes',
  opaque: '#opaque-tokens',
  possession: 'possession.md',
  possessionRequired: 'possession.md',
};

/** Options that many apps set. The others are for one infrastructure or another, and for tests. */
const COMMON_OPTIONS: readonly string[] = [
  ...['issuer', 'audience', 'clientIds', 'preset', 'scopes', 'generationClaim', 'generationSource', 'opaque'],
  ...['unguarded', 'optional', 'refusals', 'logger'],
];

/** The names and defaults come from the tables, those of an issuer first, meanings from the public interface. */
function optionTable(isShown: (name: string) => boolean): string {
  const options = declaredOptions();
  const all = Object.entries<Pick<OptionRow<unknown>, 'fallback'>>({ ...ISSUER_OPTIONS, ...GATE_OPTIONS });
  const shownOptions = all.filter(([name]) => isShown(name));
  const rows = shownOptions.map(([name, { fallback: own }]) => {
    const option = options.get(name);
    if (!option) throw new Error(`the option ${name} has no comment`);
    const { fallback, about } = withoutDefault(option.about);
    const isPlain = ['boolean', 'number', 'string'].includes(typeof own);
    if (isPlain && fallback.replace(/[`']/g, '') !== String(own)) {
      throw new Error(`the default of ${name} is ${String(own)}, and its comment says ${fallback}`);
    }
    const section = SECTION_OF[name];
    const shown = section === undefined ? code(name) : `[${code(name)}](${section})`;
    return [shown, option.isRequired && name !== 'keys' ? 'required' : fallback, about];
  });
  return table(['option', 'default', 'meaning'], rows);
}

/** What the comment of an option says of it; of one in another option its name. */
function meaningOfOption(name: string): string {
  const option = declaredOptions().get(name);
  return option ? `option ${code(name)}: ${withoutDefault(option.about).about}` : `option ${code(name)}`;
}

/** The default of a comment, and the rest of it. */
function withoutDefault(comment: string): { fallback: string; about: string } {
  const [all = '', fallback = ''] = /(?:^| )Default:? ((?:[^.]|\.(?! |$))+)\./.exec(comment) ?? [];
  if (all !== '') return { fallback, about: comment.replace(all, '').trim() };
  const [, choice = ''] = /\((`[^`]+`), the default\)/.exec(comment) ?? [];
  return { fallback: choice || 'none', about: comment.replace(', the default', '') };
}

/** Every reason in the order of the documentation; `invalid_token` stands for every 401 about a token in production. */
const ALL_REASONS: Readonly<Record<string, Omit<ReasonRow, 'check'>>> = Object.fromEntries(
  Object.entries<ReasonRow>(REASONS).flatMap((entry) =>
    entry[0] === 'malformed_token' ? [['invalid_token', OPAQUE_INVALID_TOKEN], entry] : [entry],
  ),
);

/** Advice that several reasons share is above the list. */
function isSaidAbove(advice: string): boolean {
  const shared = Object.values(ALL_REASONS).filter(({ caller }) => caller === advice);
  return shared.length > 3 || advice.startsWith('Nothing');
}

function adviceList(rows: typeof ALL_REASONS): string {
  return Object.entries(rows)
    .map(([name, { status, error, cause, caller, operator }]) => {
      const seen = `**${[status, ...(error === undefined ? [] : [code(error)])].join(' ')}.** `;
      const [forOperator = '', forCaller = ''] = [operator, caller].map((one) => (isSaidAbove(one) ? '' : text(one)));
      const lines = [`${seen}${text(cause)} ${forOperator}`.trim(), ...(forCaller ? [`Caller: ${forCaller}`] : [])];
      return `### ${name}\n\n${lines.join('\n\n')}`;
    })
    .join('\n\n');
}

/** What `--help` says of a command, without the meanings of its options. */
function commandRows({ usage, about, options = [], commands = [] }: CommandEntry): readonly (readonly string[])[] {
  const flags = options.map(([names]) => code(/--[\w-]+/.exec(names)?.[0] ?? names));
  const below = commands.flatMap((one) => commandRows({ ...one, usage: `${usage} ${one.usage}` }));
  return commands.length > 0 ? below : [[code(usage), text(about), flags.join(' ')]];
}

/** Text in which `<ACCESS_TOKEN>` is not an HTML tag. */
function text(plain: string): string {
  return plain.replace(/`[^`]*`|</g, (found) => (found === '<' ? '&lt;' : found));
}

/** What was seen with running servers. */
export function serversTable(rows: readonly Seen[]): string {
  return table(
    [
      ...['server', 'version', 'run on', '`{ issuer, audience }`', 'options below'],
      ...['Description', 'secret', 'deletion', 'the gate learns by'],
    ],
    rows.map((row) => [
      ...[row.server, row.version, row.date, row.first, row.options],
      ...[row.description, row.secret, row.deletion, row.learns],
    ]),
  );
}

function code(plain: string): string {
  return plain.includes('`') ? `\`\` ${plain} \`\`` : `\`${plain}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replace(/\|/g, '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

if (require.main === module) {
  for (const page of PAGES) {
    const path = join(ROOT, page);
    writeFileSync(path, withSections(readFileSync(path, 'utf8')));
  }
}
