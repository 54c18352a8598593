import { collection } from '../collection';
import type { Row } from '../collection';
import { pence } from './money';
import type { Money } from './money';

interface Menu extends Row {
  readonly name: string;
  readonly location_ids: readonly string[];
  readonly sections: readonly { readonly name: string; readonly item_ids: readonly string[] }[];
  /** Local time of the location. */
  readonly served_from: string;
  readonly served_until: string;
  readonly status: 'draft' | 'published';
}

type NewMenu = Omit<Menu, 'id' | 'status'> & Partial<Pick<Menu, 'status'>>;

interface ModifierGroup extends Row {
  readonly name: string;
  readonly item_ids: readonly string[];
  readonly min_choices: number;
  readonly max_choices: number;
  readonly modifiers: readonly { readonly name: string; readonly price: Money }[];
}

/** What the restaurant offers at which time. */
export const menus = collection<Menu, NewMenu>({
  prefix: 'mnu',
  sample: [
    menu('Lunch', '12:00', '16:00', 'published'),
    menu('Dinner', '18:00', '22:30', 'published'),
    menu('Spring', '12:00', '22:30', 'draft'),
  ],
  complete: (input) => ({ status: 'draft', ...input }),
});

/** Choices that go with items. */
export const modifierGroups = collection<ModifierGroup, Omit<ModifierGroup, 'id'>>({
  prefix: 'mod',
  sample: [
    {
      name: 'How would you like it?',
      item_ids: ['itm_0001'],
      min_choices: 1,
      max_choices: 1,
      modifiers: [
        { name: 'Pink', price: pence(0) },
        { name: 'Well done', price: pence(0) },
      ],
    },
    {
      name: 'Extras',
      item_ids: ['itm_0001', 'itm_0002'],
      min_choices: 0,
      max_choices: 3,
      modifiers: [
        { name: 'Bacon', price: pence(150) },
        { name: 'Halloumi', price: pence(180) },
        { name: 'Fries', price: pence(320) },
      ],
    },
    {
      name: 'Size',
      item_ids: ['itm_0003', 'itm_0004'],
      min_choices: 1,
      max_choices: 1,
      modifiers: [
        { name: 'Regular', price: pence(0) },
        { name: 'Large', price: pence(60) },
      ],
    },
  ],
  complete: (input) => input,
});

function menu(name: string, served_from: string, served_until: string, status: Menu['status']): Omit<Menu, 'id'> {
  const sections = [
    { name: 'Plates', item_ids: ['itm_0001', 'itm_0002'] },
    { name: 'Drinks', item_ids: ['itm_0003', 'itm_0004'] },
  ];
  return { name, location_ids: ['loc_0002'], sections, served_from, served_until, status };
}
