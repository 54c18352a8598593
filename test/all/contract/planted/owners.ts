import { HANDLERS, wrongIn } from './parcels';
import type { Parts, Reply } from './parcels';
import { changeAny, found, handles, members, writes } from './planting';
import type { Table } from './planting';

const list = HANDLERS['list'] as Parts['handlers'][string];

/** What belongs to a client, and what a refusal must not do. */
export const OF_OWNERS: Table = {
  'the list is that of all': found('object', () =>
    handles('list', (_usual, _call, { store }) => ({
      status: 200,
      body: { parcels: [...store.parcels.values()].filter((one) => !one.deleted) },
    })),
  ),
  'the list is that of all with ?all=true': found('object', () =>
    handles('list', (usual, { query }, { store }) =>
      query.get('all') === 'true' ? { status: 200, body: { parcels: [...store.parcels.values()] } } : usual,
    ),
  ),
  'deleted parcels of all are shown': found('object', () =>
    handles('list', (usual, { query }, { store }) =>
      query.get('include_deleted') === 'true' ? { status: 200, body: { parcels: [...store.parcels.values()] } } : usual,
    ),
  ),
  'the total counts those of all': found('object', () =>
    handles('list', (usual, _call, { store }) => ({
      ...usual,
      body: { ...members(usual), total: store.parcels.size },
    })),
  ),
  'a cursor leads to those of all': found('object', () =>
    handles('list', (usual, { query }, { store }) => {
      if (!query.get('cursor')) return usual;
      const all = [...store.parcels.values()];
      return {
        status: 200,
        body: { parcels: all.slice(all.findIndex(({ id }) => id === query.get('cursor'))), total: 1 },
      };
    }),
  ),
  'lists are kept by their URL': found('object', () => {
    const kept = new Map<string, { readonly reply: Reply; readonly untilMs: number }>();
    return handles('list', (usual, { url }) => {
      const known = kept.get(url);
      if (known && known.untilMs > Date.now()) return known.reply;
      kept.set(url, { reply: usual, untilMs: Date.now() + 1000 });
      return usual;
    });
  }),
  'a parameter names the client whose parcels are listed': found('object', () => ({
    handlers: { list: (call, server, client) => list(call, server, call.query.get('client_id') ?? client) },
  })),
  'a header names the client whose parcels are listed': found('object', () => ({
    handlers: { list: (call, server, client) => list(call, server, call.headers['x-client-id'] ?? client) },
  })),
  'a limit below zero lists those of all': found('object', () =>
    handles('list', (usual, { query }, { store }) =>
      Number(query.get('limit')) < 0 ? { status: 200, body: { parcels: [...store.parcels.values()] } } : usual,
    ),
  ),
  'deleted parcels of others can be read': found('object', () =>
    handles('get', (usual, { params, query }, { store }) => {
      const known = store.parcels.get(params['id'] ?? '');
      return known && query.get('include_deleted') === 'true' ? { status: 200, body: { id: known.id } } : usual;
    }),
  ),
  'the refusal of a parcel shows it': found('object', () =>
    handles('get', (usual, { params }, { store }, client) => {
      const known = store.parcels.get(params['id'] ?? '');
      return known && known.owner !== client ? { status: 403, body: { hidden: { to: known.to } } } : usual;
    }),
  ),
  'the refusal of a parcel names its owner': found('object', () =>
    handles('get', (usual, { params }, { store }, client) => {
      const known = store.parcels.get(params['id'] ?? '');
      return known && known.owner !== client ? { status: 403, body: { error: `ask ${known.owner}` } } : usual;
    }),
  ),
  'any parcel can be read': found('object', () =>
    handles('get', (usual, { params }, { store }) => {
      const found = store.parcels.get(params['id'] ?? '');
      return found && !found.deleted
        ? { status: 200, body: { ...found, owner: undefined, carrier: 'Northwind Express' } }
        : usual;
    }),
  ),
  'any parcel can be changed': found('object', () =>
    handles('change', (usual, call, { store }) => {
      const found = store.parcels.get(call.params['id'] ?? '');
      if (!found || wrongIn(call.body, true)) return usual;
      Object.assign(found, call.body);
      return { status: 200, body: { id: found.id } };
    }),
  ),
  'any parcel can be removed, with a 404': found('object', () =>
    handles('remove', (usual, { params }, { store }) => {
      store.parcels.delete(params['id'] ?? '');
      return usual;
    }),
  ),
  'any parcels can be removed by the query': found('object', () =>
    handles('drop', (usual, { query }, { store }) => {
      const found = query.getAll('ids').flatMap((id) => store.parcels.get(id) ?? []);
      for (const one of found) one.deleted = true;
      return found.length > 0 ? { status: 204 } : usual;
    }),
  ),
  'one own id opens the others of a list': found('object', () =>
    handles('drop', (usual, { query }, { store }, client) => {
      const found = query
        .getAll('ids')
        .flatMap((one) => one.split(','))
        .flatMap((id) => store.parcels.get(id) ?? []);
      if (!found.some(({ owner }) => owner === client)) return usual;
      for (const one of found) one.deleted = true;
      return { status: 204 };
    }),
  ),
  'the parcel in the body may be that of another': found('object', () =>
    handles('merge', (usual, { params, body }, { store }, client) => {
      const [own, other] = [params['id'], (body as { with?: string } | undefined)?.with].map((id) =>
        store.parcels.get(id ?? ''),
      );
      return own?.owner === client && other ? { status: 200, body: { id: own.id } } : usual;
    }),
  ),
  'a label can be read below a parcel of another': found('object', () =>
    handles('labels', (usual, { params }, { store }, client) => {
      const [found, above] = [store.labels.get(params['label'] ?? ''), store.parcels.get(params['id'] ?? '')];
      return found && above?.owner === client && !above.deleted ? { status: 200, body: found } : usual;
    }),
  ),
  'a label can be made at a parcel of another': found('object', () =>
    handles('label', (usual, { params }, { store }, client) => {
      if (!store.parcels.has(params['id'] ?? '')) return usual;
      const id = `l-${1000 + ++store.last}`;
      store.labels.set(id, { id, owner: client, parcel: params['id'] ?? '' });
      return { status: 201, body: { id } };
    }),
  ),
  'a PATCH writes before it refuses': found('effect', () => writes('PATCH', changeAny)),
  'a DELETE removes before it refuses': found('effect', () =>
    writes('DELETE', ({ path }, { store }) => store.parcels.delete(path.split('/')[3] ?? '')),
  ),
  'a POST makes before it refuses': found('effect', () =>
    writes('POST', (call, server) => HANDLERS['make']?.(call, server, 'test-client')),
  ),
};
