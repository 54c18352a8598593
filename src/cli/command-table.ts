/* eslint-disable @typescript-eslint/no-require-imports, @typescript-eslint/consistent-type-imports -- each command loads its module when it runs: help stays fast */
import type { CommandEntry } from './command';

const load = {
  bridge: () => require('./commands/bridge') as typeof import('./commands/bridge'),
  check: () => require('./commands/check') as typeof import('./commands/check'),
  clients: () => require('./commands/clients') as typeof import('./commands/clients'),
  contract: () => require('./commands/contract') as typeof import('./commands/contract'),
  dev: () => require('./commands/dev') as typeof import('./commands/dev'),
  explain: () => require('./commands/explain') as typeof import('./commands/explain'),
  init: () => require('./commands/init') as typeof import('./commands/init'),
  report: () => require('./commands/report') as typeof import('./commands/report'),
  token: () => require('./commands/token') as typeof import('./commands/token'),
};

const LOG = [
  '--log <pretty|json>',
  'log lines for people, or JSON (default: pretty in a terminal, unless NODE_ENV is production)',
] as const;
const SCOPE = [
  '--scope <scopes>',
  'scopes to ask for, separated by blanks (default: all that the client has)',
] as const;
const SECRET = [
  ['--secret <secret>', 'client secret (default: the one kept in TILLGATE_DATA_DIR)'],
  ['--secret-file <file>', 'file that holds the client secret; - is standard input'],
] as const;

const EMBEDDED = ['--embedded', 'without an issuer in the variables: the token server of tillgate dev'] as const;

const SOURCE = [
  '--generations <url>',
  'source of generations: redis(s)://, postgres:// or http(s):// (default: TILLGATE_GENERATIONS)',
] as const;

const CLIENTS: CommandEntry = {
  usage: 'clients',
  group: 'Clients and generations',
  example: 'clients add till-9 --scope "orders:read orders:write"',
  about: 'client credentials at the token server',
  commands: [
    {
      usage: 'list',
      about: 'list the clients',
      run: (context) => load.clients().list(context),
    },
    {
      usage: 'add <client>',
      about: 'register a client and print its secret, once',
      options: [
        ['--description <text>', 'free text; a change of it discards the tokens issued before'],
        ['--scope <scopes>', 'scopes that it may ask for, separated by blanks'],
      ],
      run: (context, options, client) => load.clients().add(context, options, client),
    },
    {
      usage: 'describe <client> <text>',
      about: 'change the Description: tokens issued before are discarded, the new one is printed',
      run: (context, _options, client, text) => load.clients().describe(context, client, text),
    },
    {
      usage: 'scopes <client>',
      about: 'give scopes to a client, or take them away, which discards the tokens issued before',
      options: [
        ['--add <scopes>', 'scopes that it may ask for from now on, separated by blanks'],
        ['--remove <scopes>', 'scopes that it loses, separated by blanks'],
      ],
      run: (context, options, client) => load.clients().scopes(context, options, client),
    },
    {
      usage: 'rotate <client>',
      about: 'issue a new secret and print it, once',
      options: [
        ['--keep-tokens', 'leave the tokens issued before alive'],
        ['--revoke-previous', 'revoke the previous secret immediately'],
      ],
      run: (context, options, client) => load.clients().rotate(context, options, client),
    },
    {
      usage: 'remove <client>',
      about: 'delete a client',
      run: (context, _options, client) => load.clients().remove(context, client),
    },
  ],
};

const BRIDGE: CommandEntry = {
  usage: 'bridge',
  group: 'Clients and generations',
  example: 'bridge keycloak --url https://login.example.com/realms/shop --client bridge --secret-file bridge.secret',
  about: 'changes of credentials at an authorization server of another vendor, published as floors',
  commands: [
    {
      usage: 'keycloak',
      about: 'follow the admin events of a Keycloak realm until stopped',
      options: [
        ['--url <url>', 'URL of the realm (default: TILLGATE_ISSUER)'],
        ['--client <client>', 'client with the roles view-events and view-clients of realm-management'],
        SECRET[1],
        SOURCE,
        LOG,
      ],
      run: (context, options) => load.bridge().keycloak(context, options),
    },
  ],
};

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    usage: 'dev [command...]',
    group: 'Servers',
    example: 'dev -- node --watch app.js',
    about: 'start the embedded token server with its console, and a command that is configured for it',
    options: [
      ['--port <port>', 'where the API listens (default: TILLGATE_PORT)'],
      ['--auth-port <port>', 'where the token server listens (default: TILLGATE_AUTH_PORT)'],
      ['--token-server', 'start the token server alone, for an API that runs elsewhere'],
      [
        '--scopes <scopes>',
        'scopes that clients may have, separated by blanks (default: those of the document, else any)',
      ],
      ['--openapi <file>', 'OpenAPI document of the API (default: openapi.yaml, if it is there)'],
      LOG,
    ],
    run: (context, options, ...command) => load.dev().dev(context, options, ...command),
  },
  {
    usage: 'token <client>',
    group: 'Tokens and requests',
    example: 'token pos-terminal --scope orders:read',
    about: 'request an access token and print it',
    options: [SCOPE, ...SECRET],
    run: (context, options, client) => load.token().token(context, options, client),
  },
  {
    usage: 'call <method> <path>',
    group: 'Tokens and requests',
    example: 'call POST /v1/orders --as pos-terminal --data @order.json',
    about: 'call the API',
    options: [
      ['--as <client>', 'request a token as this client first'],
      ['--token <token>', 'use this access token instead'],
      ['-H, --header <header>', 'a further header, as name: value; may be repeated', true],
      ['--data <json>', 'request body; @order.json reads it from a file, @- from standard input'],
      SCOPE,
      ...SECRET,
    ],
    run: (context, options, method, path) => load.token().call(context, options, method, path),
  },
  {
    usage: 'explain <token>',
    group: 'Tokens and requests',
    example: 'explain --embedded "$(npx @tillgate/cli token kiosk)"',
    about: 'say which checks an access token passes and which it fails; - reads it from standard input',
    options: [['--scope <scopes>', 'scopes that the route would ask for, separated by blanks'], EMBEDDED],
    run: (context, options, token) => load.explain().explainToken(context, options, token),
  },
  CLIENTS,
  {
    usage: 'revoke <client>',
    group: 'Clients and generations',
    example: 'revoke pos-terminal',
    about: 'discard all tokens of a client issued so far',
    options: [
      ['--generations <url>', 'publish the time of now to this source instead of asking the token server'],
      [
        '--compared-by <iat>',
        'with --generations: the API compares the time of issue (default: TILLGATE_GENERATION_CLAIM)',
      ],
    ],
    run: (context, options, client) => load.clients().revoke(context, options, client),
  },
  BRIDGE,
  {
    usage: 'contract',
    group: 'Checks and projects',
    example: 'contract --url http://127.0.0.1:3000 --openapi openapi.yaml --issuer-port 4000',
    about: 'attack a running server by its openapi.yaml; exit 1 when something is open, 2 when something is not tested',
    options: [
      ['--url <url>', 'the server under test'],
      ['--openapi <file>', 'its document (default: openapi.yaml)'],
      ['--issuer-port <port>', 'where the issuer that the server must trust listens (default: 4000)'],
      ['--audience <audience>', 'aud of the tokens (default: https://api.test)'],
      ['--preset <preset>', 'shape of the tokens, as the server expects them: okta, keycloak, ... (default: rfc9068)'],
      ['--owner <clients>', 'two client ids, the owner of objects and another one: till-7,kiosk-2'],
      ['--class <classes>', 'only these cases: token,scope,spelling,...'],
      ['--depth <quick|full>', 'how many attacks on each operation (default: full up to 12 of them)'],
      ['--header <header>', 'header of every request: "Name: value"', true],
      ['--ignore <path>', 'path to skip; /docs/* for everything below', true],
      ['--generations', 'superseded tokens must be refused'],
      ['--hides', '404 may hide a 401 or 403'],
      ['--strict', 'fail for what is only noted otherwise'],
      ['--allow-untested', 'exit 0 although some operations were not tested'],
      ['--wait <seconds>', 'how long to wait for the server to be up (default: 30)'],
      ['--config <file>', 'YAML with these options and those of contractCases() (default: tillgate.contract.yaml)'],
      ['--baseline <file>', 'what --json has printed in an earlier run: its failures count no more'],
    ],
    run: (context, options) => load.contract().contract(context, options),
  },
  {
    usage: 'report [log]',
    group: 'Checks and projects',
    example: 'report api.log',
    about: 'sum up what reportOnly() has logged; - is standard input',
    run: (context, options, log) => load.report().report(context, options, log),
  },
  {
    usage: 'check',
    group: 'Checks and projects',
    example: 'check --token -',
    about: 'examine configuration, issuer, keys and a token, and say what to change',
    options: [['--token <token>', 'an access token that the API should accept; - is standard input'], EMBEDDED],
    run: (context, options) => load.check().check(context, options),
  },
  {
    usage: 'init <directory>',
    group: 'Checks and projects',
    example: 'init shop',
    about: 'write a project to start from: an app, its openapi.yaml, and tests by it',
    options: [['--javascript', 'in JavaScript instead of TypeScript']],
    run: (context, options, directory) => load.init().init(context, options, directory),
  },
];
