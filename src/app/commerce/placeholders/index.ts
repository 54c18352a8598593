import type { OpenCollection } from '../collection';
import type { ResourceName } from '../resources';
import { customers } from './customers';
import { checks, tables } from './dining';
import { inventory } from './inventory';
import { categories, items } from './items';
import { kitchenTickets } from './kitchen-tickets';
import { locations } from './locations';
import { menus, modifierGroups } from './menus';
import { orders } from './orders';
import { payments } from './payments';
import { priceLists, promotions } from './prices';
import { reservations } from './reservations';

/** The sample data of every resource: a resource without a line here does not compile. */
export const PLACEHOLDERS: Readonly<Record<ResourceName, OpenCollection>> = {
  locations,
  items,
  categories,
  inventory,
  'price-lists': priceLists,
  promotions,
  customers,
  orders,
  payments,
  menus,
  'modifier-groups': modifierGroups,
  tables,
  checks,
  reservations,
  'kitchen-tickets': kitchenTickets,
};
