export { auditRoutes } from './audit-routes';
export type { AuditRoutesOptions } from './audit-routes';
export { contractCases } from './contract-cases/contract-cases';
export type { ContractCases } from './contract-cases/contract-cases';
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
export type { TokenSource } from './contract-cases/attacks';
export { expectChallenge, expectProblem } from './expectations';
export type { AnswerLike, ExpectedChallenge, ExpectedProblem } from './expectations';
export { generationSourceCases } from './generation-source-cases';
export type { GenerationSourceCase, GenerationSourceCasesOptions } from './generation-source-cases';
export type { GenerationSourceFixture } from './source-fixture';
export { startTestIssuer } from './http-issuer';
export type { HttpTestIssuer, HttpTestIssuerOptions } from './http-issuer';
export type { Outage } from './http-issuer-server';
export { matchers } from './matchers';
export type { AnswerMatchers } from './matchers';
export { createTestIssuer } from './test-issuer';
export type { TestIssuerOptions } from './test-issuer';
export type { TestClock } from './test-issuer-clock';
export type { CommonIssuerOptions, TestIssuer } from './test-issuer-parts';
export type { TestToken } from './test-issuer-token';
export type { RouteFinding, RouteFindingKind } from '../openapi/finding';
