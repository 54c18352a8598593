'use strict';
// An entry that only lists names of other files (`export { a } from './b'`) loads each of them with the first of its names that is
// read: a test that makes a token reads nothing of contract cases.

const COMMENTS = /\/\*[^]*?\*\/|^\s*\/\/.*$/gm;
const EXPORT = /^export (type )?\{([^}]*)\} from '([^']+)';$/gm;

/** The script of such a list, or `undefined` for a file that does more. `exports.a =` is what Node's ESM finds names by. */
function lateList(source) {
  const text = source.replace(COMMENTS, '');
  if (text.replace(EXPORT, '').trim() !== '') return undefined;
  const files = [...text.matchAll(EXPORT)].flatMap(([, isType, list, file]) => {
    const names = list.split(',').map((name) => name.trim());
    const values = names.filter((name) => name !== '' && !name.startsWith('type '));
    return isType || values.length === 0 ? [] : [{ file, values }];
  });
  if (files.length === 0) return undefined;
  const all = files.flatMap(({ values }) => values);
  const renamed = all.find((name) => !/^\w+$/.test(name));
  if (renamed) throw new Error(`a list cannot rename: ${renamed}`);
  return `"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
${all.map((name) => `exports.${name} = `).join('')}void 0;
function late(load, names) {
    for (const name of names) {
        const get = () => {
            const value = load()[name];
            Object.defineProperty(exports, name, { configurable: false, value });
            return value;
        };
        Object.defineProperty(exports, name, { enumerable: true, configurable: true, get });
    }
}
${files.map(({ file, values }) => `late(() => require("${file}"), ${JSON.stringify(values)});\n`).join('')}`;
}

module.exports = { lateList };
