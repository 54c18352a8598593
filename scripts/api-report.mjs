// Compares what each public entry of the packages declares with the committed reports api/*.api.md: `node scripts/api-report.mjs` fails where
// they differ, `--update` writes the reports. It also fails where an entry mentions a type that no entry exports, because users cannot name such
// a type. `--built` reads the declarations of the last build instead of building.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const REPORTS = join(ROOT, 'api');
const WORK = join(ROOT, '.api-report');
const BUILT = process.argv.includes('--built');

const DERIVED = 'derived-types.md';
/** A declaration whose members are derived from other types. Users name the derived type, so those may stay unexported. */
const DERIVATION = /^export (?:type .*typeof|interface \w+ extends) .*$/gm;

const update = process.argv.includes('--update');
const rooms = JSON.parse(readFileSync(join(ROOT, 'src/rooms.json'), 'utf8')).filter(({ isPublished }) => isPublished);
const entries = rooms.flatMap(({ folder: room }) => {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'src', room, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([name, { types }]) => types && name !== './internal')
    .map(([name, { types }]) => ({
      report: `${[room === 'gate' ? '' : room, name.slice(2)].filter(Boolean).join('-') || 'tillgate'}.api.md`,
      manifest: join('src', room, 'package.json'),
      declarations: join('src', room, types),
    }));
});

process.once('exit', () => rmSync(WORK, { recursive: true, force: true }));
mkdirSync(REPORTS, { recursive: true });
const build = [join(ROOT, 'scripts/build.mjs')];
if (!BUILT && spawnSync(process.execPath, build, { stdio: 'inherit' }).status !== 0) process.exit(1);

const forgotten = new Map();
const changed = entries.filter((entry) => !report(entry)).map(({ report }) => report);
const reports = entries.map(({ report }) => readFileSync(join(WORK, 'reports', report), 'utf8'));
const exported = new Set(reports.flatMap(exportedNames));
const hidden = [...forgotten.keys()].filter((name) => !exported.has(name));
if (!reportDerived()) changed.push(DERIVED);
const orphans = readdirSync(REPORTS).filter(
  (name) => name !== DERIVED && !entries.some(({ report }) => report === name),
);
for (const name of update ? orphans : []) rmSync(join(REPORTS, name));
const wrong = [...changed, ...orphans];
if (wrong.length > 0 && !update) {
  console.error(`The public declarations have changed: ${wrong.join(', ')}.`);
  console.error('Meant? Run npm run api:update, commit api/, and say it in CHANGELOG.md.');
  process.exitCode = 1;
}

const undeclared = reports.join('\n').replace(DERIVATION, '');
const nameless = hidden.filter((name) => new RegExp(`\\b${name}\\b`).test(undeclared));
for (const name of nameless)
  console.error(`No entry exports ${name}, which ${forgotten.get(name).join(', ')} mentions.`);
if (nameless.length > 0) process.exitCode = 1;

function exportedNames(report) {
  return [...report.matchAll(/^export (?:abstract )?(?:class|const|function|interface|type) (\w+)/gm)].map(
    ([, name]) => name,
  );
}

/** Writes or compares the report of one entry; `false` when it differs. */
function report({ report, manifest, declarations }) {
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: ROOT,
      mainEntryPointFilePath: join(ROOT, declarations),
      newlineKind: 'lf',
      compiler: {
        overrideTsconfig: {
          extends: join(ROOT, 'tsconfig.json'),
          compilerOptions: { types: ['node'], customConditions: [] },
          files: [join(ROOT, declarations)],
          include: [],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: report,
        reportFolder: REPORTS,
        reportTempFolder: join(WORK, 'reports'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      messages: {
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
          'ae-undocumented': { logLevel: ExtractorLogLevel.None },
          'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: false },
        },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(ROOT, manifest),
  });
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: update,
    showVerboseMessages: false,
    messageCallback(message) {
      if (message.messageId === 'ae-forgotten-export') noteForgotten(message.text, report);
      message.handled = message.logLevel !== 'error';
    },
  });
  if (apiReportChanged && !update) showDifference(join(REPORTS, report), join(WORK, 'reports', report));
  return !apiReportChanged;
}

/** Writes or compares the members of the types that are derived from what no entry exports; `false` when they differ. */
function reportDerived() {
  const files = entries.map(({ declarations }) => join(ROOT, declarations));
  const program = ts.createProgram(files, { types: ['node'], target: ts.ScriptTarget.ES2022, strict: true });
  const checker = program.getTypeChecker();
  const modules = files.map((file) => checker.getSymbolAtLocation(program.getSourceFile(file)));
  const derived = modules
    .flatMap((module) => checker.getExportsOfModule(module))
    .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
    .filter(({ declarations: [declaration] = [] }) => {
      const [text] =
        declaration && isTypeDeclaration(declaration) ? (declaration.getText().match(DERIVATION) ?? []) : [];
      return hidden.some((name) => new RegExp(`\\b${name}\\b`).test(text ?? ''));
    });
  const lines = derived.map((symbol) => {
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    if (type.isUnion()) return `- ${symbol.name}: ${type.types.map(({ value }) => `\`${value}\``).join(', ')}`;
    const members = checker.getPropertiesOfType(type).map((member) => {
      const text = checker.typeToString(checker.getTypeOfSymbol(member), undefined, ts.TypeFormatFlags.NoTruncation);
      return `  - ${member.name}: \`${text}\``;
    });
    return [`- ${symbol.name}`, ...members].join('\n');
  });
  const text = `# Types that are derived from others, written out\n\n${[...new Set(lines)].sort().join('\n')}\n`;
  const path = join(REPORTS, DERIVED);
  const isSame = existsSync(path) && readFileSync(path, 'utf8') === text;
  if (update && !isSame) writeFileSync(path, text);
  return isSame || update;
}

function isTypeDeclaration(node) {
  return ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
}

/** The message begins: The symbol "Name" needs to be exported by the entry point. */
function noteForgotten(text, report) {
  const name = /"(\w+)"/.exec(text)?.[1] ?? text;
  forgotten.set(name, [...new Set([...(forgotten.get(name) ?? []), report])]);
}

function showDifference(committed, now) {
  if (!existsSync(committed)) return;
  spawnSync('git', ['--no-pager', 'diff', '--no-index', '--', committed, now], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}
