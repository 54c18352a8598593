const express = require('express');
const { authenticate, requireScope } = require('tillgate');
const { startTestIssuer } = require('@tillgate/testing');
const { remoteCases } = require('./remote-cases.cjs');

for (const { name, run } of remoteCases({ express, authenticate, requireScope, startTestIssuer })) test(name, run);
