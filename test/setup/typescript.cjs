// Makes `require()` load TypeScript, and shows its lines in the stacks of failures.
const { transformSync } = require('esbuild');
const { SourceMap } = require('node:module');
const { existsSync, readFileSync } = require('node:fs');
const { join, relative } = require('node:path');
const { fileURLToPath } = require('node:url');

const SOURCE_MAP_URL = '//# sourceMappingURL=data:application/json;base64,';
const SOURCE_MAP = new RegExp(`${SOURCE_MAP_URL}(\\S+)\\s*$`);

/** Loads what compile() has written to `outdir`; compiles other files by itself. */
function loadTypeScript({ rootDir, outdir, options }) {
  require.extensions['.ts'] = function load(module, file) {
    const compiled = join(outdir, relative(rootDir, file)).replace(/ts$/, 'js');
    const isThere = file.startsWith(rootDir) && existsSync(compiled);
    const code = isThere ? withFullPath(readFileSync(compiled, 'utf8'), file) : compileOne(file, options);
    texts.set(file, code);
    module._compile(code, file);
  };
}

function compileOne(file, options) {
  return transformSync(readFileSync(file, 'utf8'), { ...options, sourcefile: file, loader: 'ts' }).code;
}

/** Coverage counts only files that their source map names by the full path; esbuild writes one from `outdir`. */
function withFullPath(code, file) {
  if (!process.env.NODE_V8_COVERAGE) return code;
  return code.replace(SOURCE_MAP, (_map, encoded) => {
    const map = { ...JSON.parse(Buffer.from(encoded, 'base64').toString()), sources: [file] };
    return SOURCE_MAP_URL + Buffer.from(JSON.stringify(map)).toString('base64');
  });
}

/** By file. */
const texts = new Map();

/** Replaces the places in compiled code: reading the source maps for every suite that passes takes longer than the suites do. */
function withSourceLines(stack) {
  return stack.replace(/((?:file:\/\/)?\/[^\s():]+\.ts):(\d+):(\d+)/g, (place, url, line, column) => {
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    const map = texts.get(file)?.match(SOURCE_MAP)?.[1];
    if (map === undefined) return place;
    const payload = JSON.parse(Buffer.from(map, 'base64').toString());
    const { originalLine, originalColumn } = new SourceMap(payload).findEntry(line - 1, column - 1);
    return originalLine === undefined ? place : `${file}:${originalLine + 1}:${originalColumn + 1}`;
  });
}

/** `suite` is the one that suite.cjs loads next; worker.mjs names it. */
module.exports = { loadTypeScript, withSourceLines, suite: undefined };
