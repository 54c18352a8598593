export { expectChallenge, expectProblem } from './expectations';
export type { AnswerLike } from './expectations';
export { createTestIssuer } from './test-issuer';
export type { TestIssuer, TestIssuerOptions, TestToken } from './test-issuer';
