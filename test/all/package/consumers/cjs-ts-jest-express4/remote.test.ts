import express from 'express';
import { authenticate, requireScope } from 'tillgate';
import { startTestIssuer } from '@tillgate/testing';
import { remoteCases } from './remote-cases.cjs';

for (const { name, run } of remoteCases({ express, authenticate, requireScope, startTestIssuer })) test(name, run);
