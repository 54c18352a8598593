export { expectChallenge, expectProblem } from './expectations';
export type { AnswerLike } from './expectations';
export { generationSourceCases } from './generation-source-cases';
export type { GenerationSourceCase, GenerationSourceCasesOptions } from './generation-source-cases';
export type { GenerationSourceFixture } from './source-fixture';
export { createTestIssuer } from './test-issuer';
export type { TestIssuer, TestIssuerOptions } from './test-issuer';
export type { TestClock } from './test-issuer-clock';
export type { TestToken } from './test-issuer-token';
