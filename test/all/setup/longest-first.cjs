'use strict';
// The order of the suites of `npm run test:all`. Jest knows how long each one took last time; on a fresh machine it knows
// nothing, and begins with the largest file.
const { default: Sequencer } = require('@jest/test-sequencer');

/** Suites that take or wait longest, in this order: one that begins last would keep all others waiting. */
const LONGEST = [
  'package/first-commands',
  'package/consumers',
  'nodes/nodes',
  'contract/schemathesis',
  'package/examples',
  'simulation/simulation',
  'keycloak/keycloak',
  'chaos/edges',
  'redis/faults',
  'redis/campaigns',
  'chaos/chaos',
  'package/typescript',
  'redis/writers',
  'faults/greedy-clients',
  'redis/conformance',
  'properties/mutants',
];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const rankOf = ({ path }) => {
      const index = LONGEST.findIndex((name) => path.endsWith(`/test/all/${name}.test.ts`));
      return index === -1 ? LONGEST.length : index;
    };
    return [...super.sort(tests)].sort((one, other) => rankOf(one) - rankOf(other));
  }
};
