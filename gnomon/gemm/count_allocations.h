#pragma once

/// For tests: how often the calling thread has allocated.

long AllocationsOfThisThread();
