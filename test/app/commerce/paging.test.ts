import { routes } from '../../../src/app/commerce/resources';
import { commerceApp } from './commerce-app';
import type { Caller } from './commerce-app';

const lists = routes().filter(({ operation }) => operation === 'list');

/** Every row of a list, and how many came with each page. */
async function walk(caller: Caller, path: string, limit: number): Promise<{ rows: unknown[]; sizes: number[] }> {
  const rows: unknown[] = [];
  const sizes: number[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const response = await caller.get(`${path}?limit=${limit}${cursor && `&cursor=${cursor}`}`);
    expect(response.status).toBe(200);
    rows.push(...response.body.data);
    sizes.push(response.body.data.length);
    cursor = response.body.next_cursor as string | null;
  }
  return { rows, sizes };
}

describe('pages', () => {
  it.each(lists.map(({ path, scopes }) => [path, scopes[0]!]))(
    'of %s are together the whole list',
    async (path, scope) => {
      const caller = commerceApp().as(scope);
      const whole = await caller.get(path);
      expect(whole.body.data.length).toBeGreaterThanOrEqual(3);
      expect(whole.body.next_cursor).toBeNull();
      for (const limit of [1, 2, whole.body.data.length]) {
        const { rows, sizes } = await walk(caller, path, limit);
        expect(rows).toEqual(whole.body.data);
        expect(sizes.slice(0, -1).every((size) => size === limit)).toBe(true);
        expect(sizes.at(-1)).toBeGreaterThan(0);
      }
    },
  );

  it('have 20 rows unless the request says otherwise', async () => {
    const caller = commerceApp().as('tables:read', 'tables:write');
    const table = { location_id: 'loc_0002', name: 'T', seats: 2, area: 'bar' };
    for (let more = 0; more < 20; more += 1) await caller.post('/v1/tables', table);
    const { body } = await caller.get('/v1/tables');
    expect(body.data).toHaveLength(20);
    const rest = await caller.get(`/v1/tables?cursor=${body.next_cursor}`);
    expect(rest.body.data).toHaveLength(4);
    expect(rest.body.next_cursor).toBeNull();
  });

  it('continue at the same place when the row named by the cursor is removed', async () => {
    const caller = commerceApp().as('items:read', 'items:write');
    const first = await caller.get('/v1/items?limit=2');
    await caller.delete('/v1/items/itm_0002');
    const second = await caller.get(`/v1/items?limit=1&cursor=${first.body.next_cursor}`);
    expect(second.body.data).toMatchObject([{ id: 'itm_0003' }]);
  });

  it.each([
    ['no base64url', 'a!b'],
    ['text', 'hello'],
    ['padding', `${Buffer.from('ord_0001').toString('base64url')}=`],
    ['the id of another list', Buffer.from('itm_0001').toString('base64url')],
    ['not an id', Buffer.from('ord_x').toString('base64url')],
  ])('respond with 400 for a cursor that is %s', async (_what, cursor) => {
    const response = await commerceApp()
      .as('orders:read')
      .get(`/v1/orders?cursor=${encodeURIComponent(cursor)}`);
    expect(response.status).toBe(400);
    expect(response.type).toBe('application/problem+json');
    expect(response.body.code).toBe('invalid_request');
    expect(response.body.errors).toEqual([
      { path: '/query/cursor', message: 'must be the next_cursor of another page of this list' },
    ]);
  });
});
