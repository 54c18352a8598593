import { CliError, EXIT, print } from '../command';
import type { CommandContext, CommandEntry } from '../command';

/** `tillgate completion <shell>`: the script that completes commands and options, from the table of commands. */
export function completion(context: CommandContext, commands: readonly CommandEntry[], shell: string): void {
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell as keyof typeof SHELLS] : undefined;
  if (!write) throw new CliError(`expected bash, zsh or fish, got ${JSON.stringify(shell)}`, EXIT.usage);
  const script = write(levelsOf({ commands, usage: '', about: '', options: [['--version', 'show the version']] }, ''));
  print(context, { shell, script }, script);
}

/** What can follow the commands that are complete: `clients add`, or nothing yet. */
interface Level {
  readonly at: string;
  /** Whether a client id can follow. */
  readonly takesClient: boolean;
  readonly words: readonly {
    readonly text: string;
    readonly about: string;
    /** The value that an option takes: `<file>`, `<pretty|json>`. */
    readonly value?: string | undefined;
  }[];
}

const ALWAYS = [
  ['--json', 'print one JSON document'],
  ['--verbose', 'show each request'],
] as const;

function levelsOf({ usage, options = [], commands = [], run }: CommandEntry, at: string): readonly Level[] {
  const all: NonNullable<CommandEntry['options']> = [['--help', 'show the help'], ...options, ...(run ? ALWAYS : [])];
  const words = [
    ...choicesOf(usage).map((text) => ({ text, about: '' })),
    ...commands.map((one) => ({ text: nameOf(one), about: one.about })),
    ...all.map(([flags, about]) => {
      const [text = '', value] = flags.replace(/^-\w, /, '').split(' ');
      return { text, about, value };
    }),
  ];
  return [
    { at, takesClient: CLIENT.test(usage), words },
    ...commands.flatMap((one) => levelsOf(one, `${at} ${nameOf(one)}`.trim())),
  ];
}

/** `token` of `token <client>`. */
function nameOf({ usage }: Pick<CommandEntry, 'usage'>): string {
  return usage.replace(/ .*/, '');
}

/** `pretty` and `json` of `<pretty|json>`. */
function choicesOf(value: string): readonly string[] {
  return /<([^>]*\|[^>]*)>/.exec(value)?.[1]?.split('|') ?? [];
}

const FILE = /<(file|module)>/;
const CLIENT = /<client>/;
/** Ids of the clients of the token server that runs; bash expands its words, so that an id must be no `$(command)`. */
const CLIENT_IDS = `tillgate clients list --ids 2>/dev/null | command grep -E '^[A-Za-z0-9._@-]+$'`;

/** Shell patterns of the words so far that, with a further one, are a command. */
function patternsOf(levels: readonly Level[]): readonly string[] {
  return levels.flatMap(({ at }) => (at === '' ? [] : [quoted(at.includes(' ') ? at : ` ${at}`)]));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function bashScript(levels: readonly Level[]): string {
  const complete = (words: readonly string[], takesClient = false): string =>
    `COMPREPLY=($(compgen -W ${quoted(words.join(' '))}${takesClient ? `" $(${CLIENT_IDS})"` : ''} -- "$word"))`;
  const values = new Map(levels.flatMap(({ words }) => words.map(({ text, value }) => [text, value] as const)));
  const cases = [...values].flatMap(([text, value]) => {
    if (value === undefined) return [];
    const files = 'COMPREPLY=($(compgen -f -- "$word"))';
    const act = FILE.test(value) ? files : complete(choicesOf(value), CLIENT.test(value));
    return [`    ${text}) ${act}; return ;;`];
  });
  return [
    '_tillgate() {',
    '  local word="${COMP_WORDS[COMP_CWORD]}" at="" part',
    '  for part in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do',
    `    case "$at $part" in ${patternsOf(levels).join('|')}) at="\${at:+$at }$part" ;; esac`,
    '  done',
    '  case "${COMP_WORDS[COMP_CWORD-1]}" in',
    ...cases,
    '  esac',
    '  case "$at" in',
    ...levels.map(({ at, takesClient, words }) => {
      // Asking the token server takes a moment, which a half-typed option need not wait for.
      const all = words.map(({ text }) => text);
      const act = takesClient
        ? `case "$word" in -*) ${complete(all)} ;; *) ${complete(all, true)} ;; esac`
        : complete(all);
      return `    ${quoted(at)}) ${act} ;;`;
    }),
    '  esac',
    '}',
    'complete -o default -F _tillgate tillgate',
  ].join('\n');
}

function fishScript(levels: readonly Level[]): string {
  const takes = (value: string): string => {
    if (value === '') return '';
    if (FILE.test(value)) return ' -r -F';
    return ` -x -a ${quoted(CLIENT.test(value) ? `(${CLIENT_IDS})` : choicesOf(value).join(' '))}`;
  };
  return [
    'function __tillgate_at',
    "  set -l at ''",
    '  for part in (commandline -opc)[2..]',
    '    switch "$at $part"',
    `      case ${patternsOf(levels).join(' ')}`,
    '        set at (string trim -- "$at $part")',
    '    end',
    '  end',
    '  test "$at" = "$argv"',
    'end',
    'complete -c tillgate -f',
    ...levels.flatMap(({ at, takesClient, words }) => [
      ...(takesClient
        ? [`complete -c tillgate -n ${quoted(`__tillgate_at ${at}`.trim())} -a ${quoted(`(${CLIENT_IDS})`)}`]
        : []),
      ...words.map(({ text, about, value = '' }) => {
        const word = text.startsWith('--') ? `-l ${text.slice(2)}${takes(value)}` : `-a ${text}`;
        return `complete -c tillgate -n ${quoted(`__tillgate_at ${at}`.trim())} ${word} -d ${quoted(about)}`;
      }),
    ]),
  ].join('\n');
}

const SHELLS = {
  bash: bashScript,
  // zsh runs completion functions of bash; without compinit it completes nothing.
  zsh: (levels: readonly Level[]) =>
    `(( $+functions[compdef] )) || { autoload -U compinit && compinit; }\nautoload -U bashcompinit && bashcompinit\n${bashScript(levels)}`,
  fish: fishScript,
};
