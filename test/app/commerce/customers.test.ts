import { commerceApp, routeOf } from './commerce-app';

const CONTACT = { email: 'amara.osei@example.com', phone: '+442079460101' };
const HIDDEN = { email: null, phone: null };

describe('the contact data of customers', () => {
  it('is null without customers:pii, in lists and in single responses', async () => {
    const caller = commerceApp().as('customers:read');
    const list = await caller.get('/v1/customers');
    for (const row of list.body.data) expect(row).toMatchObject(HIDDEN);
    expect((await caller.get('/v1/customers/cus_0001')).body).toMatchObject({ name: 'Amara Osei', ...HIDDEN });
  });

  it('is shown with customers:pii', async () => {
    const caller = commerceApp().as('customers:read', 'customers:pii');
    const list = await caller.get('/v1/customers');
    expect(list.body.data[0]).toMatchObject(CONTACT);
    expect((await caller.get('/v1/customers/cus_0001')).body).toMatchObject({ name: 'Amara Osei', ...CONTACT });
  });

  it('is not reached with customers:pii alone', async () => {
    const response = await commerceApp().as('customers:pii').get('/v1/customers/cus_0001');
    expect(response.status).toBe(403);
    expect(response.body.required_scopes).toEqual(['customers:read']);
  });

  it('is hidden from writers without customers:pii, but stored', async () => {
    const shop = commerceApp();
    const writer = shop.as('customers:write');
    const created = await writer.follow(routeOf('createCustomer'));
    expect(created.body).toMatchObject({ name: 'Noor Haddad', ...HIDDEN });
    const changed = await writer.patch('/v1/customers/cus_0001', { marketing_consent: false });
    expect(changed.body).toMatchObject({ marketing_consent: false, ...HIDDEN });

    const reader = shop.as('customers:read', 'customers:pii');
    expect((await reader.get(created.headers['location']!)).body.email).toBe('noor.haddad@example.com');
    expect((await reader.get('/v1/customers/cus_0001')).body).toMatchObject(CONTACT);
  });
});
