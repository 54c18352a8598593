'use strict';
// The order of the suites of `npm run test:all`. Jest knows how long each one took last time; on a fresh machine it knows
// nothing, and begins with the largest file.
const { default: Sequencer } = require('@jest/test-sequencer');

/** Suites of 40 s and more, the longest first: one that begins last would keep all others waiting. */
const LONGEST = [
  'package/consumers',
  'nodes/nodes',
  'package/examples',
  'contract/schemathesis',
  'keycloak/keycloak',
  'chaos/edges',
  'redis/faults',
  'redis/campaigns',
  'chaos/chaos',
  'redis/conformance',
  'properties/mutants',
  'faults/greedy-clients',
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
