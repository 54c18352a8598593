import { collection } from '../collection';
import type { Outcome, Row } from '../collection';

interface InventoryLevel extends Row {
  readonly item_id: string;
  readonly location_id: string;
  readonly on_hand: number;
  readonly reserved: number;
  readonly reorder_point: number;
  readonly updated_at: string;
}

interface NewAdjustment {
  readonly inventory_id: string;
  readonly change: number;
  readonly reason: string;
  readonly note?: string;
}

/** Stock per item and location. Levels come with items and locations: they cannot be created. */
export const inventory = collection<InventoryLevel, Omit<InventoryLevel, 'id'>>({
  prefix: 'inv',
  sample: [
    level('itm_0005', 'loc_0001', 64, 4, 24),
    level('itm_0006', 'loc_0001', 18, 0, 12),
    level('itm_0005', 'loc_0003', 960, 120, 240),
    level('itm_0006', 'loc_0003', 310, 0, 100),
    level('itm_0003', 'loc_0002', 35, 2, 20),
  ],
  complete: (input) => input,
  settle: (row, now) => ({ ...row, updated_at: now }),
  actions: { adjust },
});

function adjust(row: InventoryLevel, adjustment: NewAdjustment, now: string): Outcome<InventoryLevel> {
  const { inventory_id, change, reason, note = null } = adjustment;
  const on_hand = row.on_hand + change;
  if (on_hand < row.reserved) {
    return { conflict: `${row.on_hand} are on hand and ${row.reserved} of them reserved: ${-change} cannot leave.` };
  }
  return {
    row: { ...row, on_hand, updated_at: now },
    response: { inventory_id, change, reason, note, on_hand, created_at: now },
  };
}

function level(
  item_id: string,
  location_id: string,
  on_hand: number,
  reserved: number,
  reorder_point: number,
): Omit<InventoryLevel, 'id'> {
  return { item_id, location_id, on_hand, reserved, reorder_point, updated_at: '2026-03-02T06:30:00.000Z' };
}
