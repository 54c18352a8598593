export { auditRoutes } from './audit-routes';
export type { AuditRoutesOptions } from './audit-routes';
export { contractCases } from './contract-cases/contract-cases';
export type { ContractCases } from './contract-cases/contract-cases';
export type { TokenSource } from './contract-cases/attacks';
export type { BeforeGuard } from './contract-cases/handler-spy';
export type { ContractCase } from './contract-cases/operation-cases';
export type {
  AppContractOptions,
  CommonContractOptions,
  ContractCasesOptions,
  OperationName,
  UrlContractOptions,
} from './contract-cases/options';
export type { ContractReport } from './contract-cases/report';
export type { SampleRequest } from './contract-cases/sample-request';
export { startTestIssuer } from './http-issuer/http-issuer';
export type { HttpTestIssuer, HttpTestIssuerOptions } from './http-issuer/http-issuer';
export type { Outage } from './http-issuer/outage-server';
export { expectChallenge, expectProblem } from './matchers/expectations';
export type { ExpectedChallenge, ExpectedProblem, ResponseLike } from './matchers/expectations';
export { matchers } from './matchers/matchers';
export type { MatcherContext, MatcherResult, ResponseMatchers } from './matchers/matchers';
export type { GenerationSourceFixture } from './source-cases/harness';
export { generationSourceCases } from './source-cases/source-cases';
export type { GenerationSourceCase, GenerationSourceCasesOptions } from './source-cases/source-cases';
export { createTestIssuer } from './test-issuer/test-issuer';
export type { CommonIssuerOptions, TestIssuer, TestIssuerOptions } from './test-issuer/test-issuer';
export type { TestClock } from './test-issuer/clock';
export type { TestToken } from './test-issuer/token';
export type { RouteFinding, RouteFindingKind } from '../openapi/finding';
