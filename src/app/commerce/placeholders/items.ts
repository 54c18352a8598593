import { collection } from '../collection';
import type { Row } from '../collection';
import { pence } from './money';
import type { Money } from './money';

interface Item extends Row {
  readonly sku: string;
  readonly name: string;
  readonly description: string | null;
  readonly category_id: string | null;
  readonly price: Money;
  readonly status: 'active' | 'archived';
}

type NewItem = Pick<Item, 'sku' | 'name' | 'price'> & Partial<Pick<Item, 'description' | 'category_id' | 'status'>>;

interface Category extends Row {
  readonly name: string;
  readonly parent_id: string | null;
  readonly position: number;
}

type NewCategory = Pick<Category, 'name'> & Partial<Pick<Category, 'parent_id' | 'position'>>;

/** Products on the shelf and dishes on the menu. */
export const items = collection<Item, NewItem>({
  prefix: 'itm',
  sample: [
    item('DSH-0001', 'Harbour burger', 'Beef, cheddar, pickles', 'cat_0001', 1150),
    item('DSH-0002', 'Halloumi salad', 'Grilled halloumi, leaves, pomegranate', 'cat_0001', 980),
    item('DRK-0001', 'Lemonade', 'Made here every morning', 'cat_0003', 420),
    item('DRK-0002', 'Flat white', null, 'cat_0004', 360),
    item('RET-0001', 'House coffee beans 250 g', 'Medium roast', 'cat_0005', 895),
    item('RET-0002', 'Enamel mug', null, 'cat_0005', 1400),
    { ...item('DSH-0003', 'Pumpkin soup', 'Winter only', 'cat_0001', 690), status: 'archived' },
  ],
  complete: (input) => ({ description: null, category_id: null, status: 'active', ...input }),
});

/** Shelves and menu groups. */
export const categories = collection<Category, NewCategory>({
  prefix: 'cat',
  sample: [
    { name: 'Dishes', parent_id: null, position: 1 },
    { name: 'Drinks', parent_id: null, position: 2 },
    { name: 'Cold drinks', parent_id: 'cat_0002', position: 1 },
    { name: 'Coffee', parent_id: 'cat_0002', position: 2 },
    { name: 'Take home', parent_id: null, position: 3 },
  ],
  complete: (input) => ({ parent_id: null, position: 0, ...input }),
});

function item(
  sku: string,
  name: string,
  description: string | null,
  category_id: string,
  unitPence: number,
): Omit<Item, 'id'> {
  return { sku, name, description, category_id, price: pence(unitPence), status: 'active' };
}
