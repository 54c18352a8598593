import { readdirSync, readFileSync } from 'node:fs';
import { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';

const SOURCES = join(__dirname, '../../../src/gate');

/** Object.defineProperty() reads them from every descriptor, which no code can avoid. */
const ACCESSORS = ['get', 'set'];

/** Every member name in the sources of some layers, except {@link ACCESSORS} and those that every object has. */
export function memberNames(layers: readonly string[]): readonly string[] {
  const names = layers.flatMap((layer) => namesIn(join(SOURCES, layer)));
  return [...new Set(names)].filter((name) => !(name in Object.prototype || ACCESSORS.includes(name))).sort();
}

function namesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const files = entries.filter((one) => one.isFile() && one.name.endsWith('.ts'));
  const text = files.map((file) => readFileSync(join(file.parentPath, file.name), 'utf8')).join('\n');
  return [...text.matchAll(/(?:\.|'|\breadonly )([a-zA-Z_]\w+)(?=['?:,.;)\s])/g)].map(([, name]) => name as string);
}

/** Puts members on Object.prototype, and returns a function that removes them. */
export function pollute(names: readonly string[], value: unknown): () => void {
  for (const name of names) {
    Object.defineProperty(Object.prototype, name, { value, writable: true, configurable: true, enumerable: true });
  }
  return () => {
    for (const name of names) Reflect.deleteProperty(Object.prototype, name);
  };
}

/** A request that is ready to be passed to an app: Node's objects are made before anything is polluted. */
export interface PreparedRequest {
  /** Resolves with status and challenge error, or with `no response`. */
  send(app: RequestListener): Promise<string>;
}

/** A signature in the thread pool takes many turns of an idle event loop. */
const MOST_TURNS = 1_000_000;

export function prepareRequest(path: string, token: string | undefined): PreparedRequest {
  let text = '';
  const socket = new Duplex({
    read() {},
    write: (chunk: Buffer, _encoding, done) => void ((text += chunk.toString('latin1')), done()),
  });
  const req = new IncomingMessage(socket as Socket);
  const authorization = token === undefined ? [] : ['Authorization', `Bearer ${token}`];
  const headers = { host: 'api.test', ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  Object.assign(req, { method: 'GET', url: path, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 });
  Object.assign(req, { rawHeaders: ['Host', 'api.test', ...authorization], headers, complete: true });
  req.push(null);
  const res = new ServerResponse(req);
  res.assignSocket(socket as Socket);
  return {
    async send(app) {
      try {
        app(req, res);
      } catch (error) {
        return `threw ${String(error)}`;
      }
      for (let turns = 0; turns < MOST_TURNS && !res.writableEnded; turns++) await new Promise(setImmediate);
      return text === '' ? 'no response' : `${text.slice(9, 12)} ${/error="(\w+)"/.exec(text)?.[1] ?? ''}`.trim();
    },
  };
}
