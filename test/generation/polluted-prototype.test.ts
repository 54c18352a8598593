import { generationsFromUrl } from '../../src/generation/from-url';
import { httpGenerations } from '../../src/generation/http/log';
import { settle } from '../support/fake-time';
import { START, reasonOf, startVerifier } from './fixtures';

const prototype = Object.prototype as unknown as Record<string, unknown>;

/** Runs `work` while every object inherits these members. */
async function polluted<Value>(members: Record<string, unknown>, work: () => Value): Promise<Awaited<Value>> {
  Object.assign(prototype, members);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(members)) delete prototype[name];
  }
}

const PAGE = { position: 'p', end: true, changes: [{ client_id: 'pos', generation: 5 }] };

async function read(body: object): Promise<unknown> {
  const fetch = () => Promise.resolve(Response.json(body));
  return httpGenerations({ url: 'https://login.example', fetch }).reader().next(0);
}

describe('with a polluted Object.prototype', () => {
  it('a log is read with the given options, and not closed unless it belongs to the gate', async () => {
    const waits: number[] = [];
    const close = jest.fn();
    const reader = {
      next(waitMs: number) {
        waits.push(waitMs);
        return waits.length > 2 ? new Promise<never>(() => {}) : Promise.resolve({ changes: [], end: true });
      },
      close() {},
    };
    await polluted({ pollMs: 9e15, readTimeoutMs: 0, ownsSource: true }, async () => {
      const { verifier } = startVerifier({ source: { mark: false, reader: () => reader, close } });
      await verifier.ready();
      expect(reasonOf(() => verifier.recheck('pos', START))).toBeUndefined();
      await settle();
      await verifier.close();
    });
    expect(waits.slice(0, 2)).toEqual([0, 5_000]);
    expect(close).not.toHaveBeenCalled();
  });

  it.each<[string, Record<string, unknown>, object]>([
    ['position', { position: 'p' }, { ...PAGE, position: undefined }],
    ['end', { end: true }, { ...PAGE, end: undefined }],
    ['changes', { changes: [] }, { ...PAGE, changes: undefined }],
    ['client_id', { client_id: 'pos' }, { ...PAGE, changes: [{ generation: 5 }] }],
    ['generation', { generation: 5 }, { ...PAGE, changes: [{ client_id: 'pos' }] }],
    ['epoch', { epoch: 'e' }, { ...PAGE, mark: { unit: 1, complete_ms: 1, kept_ms: 1 } }],
  ])('a response without "%s" stays incomplete', async (_, members, body) => {
    await polluted(members, () => expect(read(body)).rejects.toThrow('GET https://login.example'));
  });

  it('a response without a mark has none', async () => {
    await polluted({ mark: { epoch: 'e', unit: 1, complete_ms: 1, kept_ms: 1 } }, async () => {
      expect(((await read(PAGE)) as { mark: unknown }).mark).toBeUndefined();
    });
  });

  it('http: stays refused', async () => {
    await polluted({ allowHttp: true }, () =>
      expect(() => generationsFromUrl('http://login.example')).toThrow('must be https:'),
    );
  });
});
