import type { Plan } from './plan';
import type { Subject } from './subject';
import { World } from './world';

/** Leaves out the events of a world that its broken promise does not need. */
export async function shrink(plan: Plan, subject: Subject): Promise<Plan> {
  const breaks = async (candidate: Plan): Promise<boolean> =>
    (await new World(candidate, subject).run()).violation !== undefined;
  let smallest = plan;
  for (let size = Math.ceil(plan.events.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < smallest.events.length;) {
      const events = smallest.events.filter((_event, index) => index < from || index >= from + size);
      const candidate = { ...smallest, events };
      if (await breaks(candidate)) smallest = candidate;
      else from += size;
    }
  }
  return smallest;
}
