const FIRST_IDS: Readonly<Record<string, string>> = {
  locations: 'loc_0001',
  items: 'itm_0001',
  categories: 'cat_0001',
  inventory: 'inv_0001',
  'price-lists': 'prl_0001',
  promotions: 'prm_0001',
  customers: 'cus_0001',
  orders: 'ord_0001',
  payments: 'pay_0001',
  menus: 'mnu_0001',
  'modifier-groups': 'mod_0001',
  tables: 'tbl_0001',
  checks: 'chk_0001',
  reservations: 'rsv_0001',
  'kitchen-tickets': 'ktk_0001',
};

/** The id of the first sample row of a resource. */
export function firstIdOf(resource: string): string {
  const id = FIRST_IDS[resource];
  if (id === undefined) throw new Error(`${resource} has no first id yet: add it to first-ids.ts`);
  return id;
}
