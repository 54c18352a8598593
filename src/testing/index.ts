export { auditRoutes, type AuditRoutesOptions } from './audit-routes';
export type { RouteFinding, RouteFindingKind } from '../openapi/audit';
export {
  contractCases,
  type ContractCase,
  type ContractCases,
  type ContractReport,
} from './contract-cases/contract-cases';
export type { TokenSource } from './contract-cases/credentials';
export type { ContractCasesOptions } from './contract-cases/options';
export type { SampleRequest } from './contract-cases/samples';
export { startTestIssuer, type HttpTestIssuer, type HttpTestIssuerOptions } from './http-issuer';
export { expectChallenge, expectProblem, matchers } from './matchers';
export type { ExpectedProblem, MatcherContext, MatcherResult, ResponseLike, ResponseMatchers } from './matchers';
export type { GenerationSourceFixture } from './source-cases/harness';
export { generationSourceCases, type GenerationSourceCasesOptions } from './source-cases/source-cases';
export { createTestIssuer, type TestClock, type TestIssuer, type TestIssuerOptions } from './test-issuer';
export type { TestToken } from './test-token';
