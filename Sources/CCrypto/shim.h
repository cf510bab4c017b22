#pragma once
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/err.h>
